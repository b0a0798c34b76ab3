"""Files and addresses in and out."""
