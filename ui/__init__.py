"""What the pages share: state, board, charts, words and prose."""
