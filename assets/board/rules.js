// Which cells a cell is computed from and which it feeds, and marking them on the page.
//
// The rules speak about whole regions rather than single cells: a region of a tensor is one
// entry per axis, either an array of indices, ALL, or all from a first one on. So a sum over 768 features is one step
// and not 768, and following it through tensors that are not on the page stays cheap.

const ALL = null;

class DependencyIndex {
  /** `cells`: every cell drawn on the page, each with its `tensor` and `index`. */
  constructor(rules, tokens, targetIds, cells) {
    this.rules = rules;
    this.tokenIds = tokens.map((token) => token.id);
    this.targetIds = targetIds;
    this.cells = cells;
    this.cellsByTensor = groupByTensor(cells);
    this.visibleRegions = new Map();
    this.consumers = null;
  }

  /** The drawn cells that `target` is computed from: the nearest ones upstream. */
  sourcesOf(target) {
    const found = new Set();
    for (const region of this.visibleSources(target.tensor, target.index.map((i) => [i]))) {
      for (const cell of this.cellsWithin(region)) found.add(cell);
    }
    return found;
  }

  /** The drawn cells that have `target` among their nearest drawn sources. */
  fedBy(target) {
    this.consumers ??= this.findConsumers();
    const found = new Set();
    for (const { cell, axes } of this.consumers.get(target.tensor) ?? []) {
      if (contains(axes, target.index)) found.add(cell);
    }
    return found;
  }

  cellsWithin({ tensor, axes }) {
    return (this.cellsByTensor.get(tensor) ?? []).filter((cell) => contains(axes, cell.index));
  }

  /** Built at the first hover of a version: who reads from which region. */
  findConsumers() {
    const consumers = new Map();
    for (const cell of this.cells) {
      for (const { tensor, axes } of this.visibleSources(cell.tensor, cell.index.map((i) => [i]))) {
        if (!consumers.has(tensor)) consumers.set(tensor, []);
        consumers.get(tensor).push({ cell, axes });
      }
    }
    return consumers;
  }

  /** Regions with drawn cells that a region is computed from, past tensors that are not drawn. */
  visibleSources(tensor, axes) {
    const key = tensor + JSON.stringify(axes);
    const known = this.visibleRegions.get(key);
    if (known) return known;
    const found = new Map();
    for (const region of this.directSources(tensor, axes)) {
      const isDrawn = this.cellsWithin(region).length > 0;
      const regions = isDrawn ? [region] : this.visibleSources(region.tensor, region.axes);
      for (const each of regions) found.set(each.tensor + JSON.stringify(each.axes), each);
    }
    const result = [...found.values()];
    this.visibleRegions.set(key, result);
    return result;
  }

  directSources(tensor, axes) {
    const rule = this.rules[tensor];
    if (!rule) return [];
    const regions = rule.inputs.flatMap((input) =>
      splitSharedAxes(input.map, axes).map((part) => ({
        tensor: input.tensor,
        axes: input.map.map((entry) => this.inputAxis(entry, part, rule.shape)),
      })),
    );
    // A cell beyond what an input holds is made of nothing.
    return regions.filter((region) => region.axes.every((indices) => indices?.length !== 0));
  }

  /** Indices along one axis of the input, given the indices along the axes of the output. */
  inputAxis([kind, ...parameters], axes, shape) {
    const indices = (axis) => listed(axes[axis], shape[axis]);
    switch (kind) {
      case "all":
        return ALL;
      case "fixed":
        return [parameters[0]];
      case "axis":
        return axes[parameters[0]];
      case "from":
        return { first: parameters[0] };
      case "before": {
        const [axis, own] = parameters;
        return Array.isArray(axes[axis]) ? range(Math.max(...axes[axis]) + Number(own)) : ALL;
      }
      case "after": {
        const [axis, own] = parameters;
        return { first: lowest(axes[axis]) + Number(!own) };
      }
      case "shift": {
        const [axis, offset] = parameters;
        return indices(axis).map((i) => i + offset);
      }
      case "within": {
        const [axis, offset, size] = parameters;
        return indices(axis).map((i) => i - offset).filter((i) => i >= 0 && i < size);
      }
      case "split": {
        const [headAxis, featureAxis, headSize] = parameters;
        if (axes[headAxis] === ALL && axes[featureAxis] === ALL) return ALL;
        return indices(headAxis).flatMap((head) => indices(featureAxis).map((i) => head * headSize + i));
      }
      case "head": {
        const [axis, headSize] = parameters;
        return axes[axis] && unique(axes[axis].map((i) => Math.floor(i / headSize)));
      }
      case "feature": {
        const [axis, headSize] = parameters;
        return axes[axis] && unique(axes[axis].map((i) => i % headSize));
      }
      case "pair": {
        const [axis, pairing, size] = parameters;
        return axes[axis] && unique(axes[axis].flatMap((i) => pairMembers(pairNumber(i, pairing, size), pairing, size)));
      }
      case "members": {
        const [axis, pairing, size] = parameters;
        return axes[axis] && unique(axes[axis].flatMap((i) => pairMembers(i, pairing, size)));
      }
      case "frequency": {
        const [axis, pairing, size] = parameters;
        return axes[axis] && unique(axes[axis].map((i) => pairNumber(i, pairing, size)));
      }
      case "ids":
        return unique((axes[1] ?? range(this.tokenIds.length)).map((position) => this.tokenIds[position]));
      case "target":
        return unique((axes[1] ?? range(this.targetIds.length)).map((position) => this.targetIds[position]));
      default:
        throw new Error(`Unknown dependency rule: ${kind}`);
    }
  }
}

/**
 * Where two axes of the input follow the same axis of the output (head and feature of one
 * channel), a region is not a product any more: take its indices one at a time. A complete
 * axis covers every combination, so it may stay whole.
 */
function splitSharedAxes(map, axes) {
  const followed = map.filter(([kind]) => !["all", "fixed", "from", "ids", "target", "split"].includes(kind)).map((entry) => entry[1]);
  const shared = followed.find((axis, position) => followed.indexOf(axis) !== position);
  if (shared === undefined || !Array.isArray(axes[shared])) return [axes];
  return axes[shared].map((index) => axes.map((each, axis) => (axis === shared ? [index] : each)));
}

function pairNumber(index, pairing, size) {
  return pairing === "half" ? index % (size / 2) : Math.floor(index / 2);
}

function pairMembers(pair, pairing, size) {
  return pairing === "half" ? [pair, pair + size / 2] : [2 * pair, 2 * pair + 1];
}

function contains(axes, index) {
  return axes.every((indices, axis) => {
    if (indices === ALL) return true;
    return Array.isArray(indices) ? indices.includes(index[axis]) : index[axis] >= indices.first;
  });
}

/** A region along one axis of that size, index by index. */
function listed(indices, size) {
  return Array.isArray(indices) ? indices : range(size).slice(lowest(indices));
}

/** The first index of a region along one axis. */
function lowest(indices) {
  if (indices === ALL) return 0;
  return Array.isArray(indices) ? Math.min(...indices) : indices.first;
}

function range(length) {
  return Array.from({ length }, (_, i) => i);
}

function unique(numbers) {
  return [...new Set(numbers)];
}

function groupByTensor(cells) {
  const groups = new Map();
  for (const cell of cells) {
    if (!groups.has(cell.tensor)) groups.set(cell.tensor, []);
    groups.get(cell.tensor).push(cell);
  }
  return groups;
}

/** Marks on the cells around the one that is pointed at; drawn without asking Python. */
class Marks {
  constructor(frame, cells) {
    Object.assign(this, { frame, cells, hovered: null, focused: null, lit: null, marked: [], state: null });
  }

  /** Sources and fed cells of what is hovered, else focused, else selected. */
  draw(selected) {
    const target = this.hovered ?? this.focused ?? selected;
    const state = [selected, target, this.lit].map((each) => each && referenceOf(each.tensor, each.index)).join(" ");
    if (state === this.state) return;
    this.state = state;
    this.clear();
    if (target) {
      this.dependencies ??= new DependencyIndex(this.frame.rules, this.frame.tokens, this.frame.targets, this.cells);
      for (const cell of this.dependencies.sourcesOf(target)) this.add(cell, "src");
      for (const cell of this.dependencies.fedBy(target)) this.add(cell, "feeds");
    }
    if (selected) {
      const reference = referenceOf(selected.tensor, selected.index);
      for (const cell of this.cells) if (cell.reference === reference) this.add(cell, "gb-selected");
    }
    if (this.lit) this.add(this.lit, "gb-lit");
  }

  add({ td }, name) {
    td.classList.add(name);
    if (name === "gb-selected") td.setAttribute("aria-current", "true");
    this.marked.push(td);
  }

  clear() {
    for (const td of this.marked) {
      td.classList.remove("src", "feeds", "gb-selected", "gb-lit");
      td.removeAttribute("aria-current");
    }
    this.marked = [];
  }
}
