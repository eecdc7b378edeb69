// Motion between pictures, by matching blocks on three sizes, and maps that are carried along it (runtime/every.py in Python).

const BLOCK = 8; // pixels a side, at each size
const SIZES = 3; // half, a quarter and an eighth of the picture
const REACH = 4; // pixels of the smallest size that a block may have moved: 32 of the picture
const STRAY = 8; // grey levels that a pixel's difference from the expected vector costs, so that flat blocks follow their neighbours
const DOUBT_LEVELS = 20; // as in core/motion.py
const LOSS = 0.08; // as in runtime/kernels/carried.py

const clamp = (value, most) => (value < 0 ? 0 : value > most ? most : value);

// A grid of vectors, in pixels of the picture: each block's position in the earlier picture minus its own, and how far to trust it.
class Field {
  constructor(columns, rows) {
    Object.assign(this, { columns, rows });
    for (const name of ["x", "y", "trust"]) this[name] = new Float32Array(columns * rows);
  }

  // Mean doubt, 0..1.
  get doubt() {
    return 1 - this.trust.reduce((sum, one) => sum + one, 0) / this.trust.length;
  }
}

export class Motion {
  #width;
  #height;
  #last = null; // pictures of the last frame, the largest first

  // Of pictures of width x height.
  constructor(width, height) {
    Object.assign(this, { width, height });
    this.#width = width >> 1;
    this.#height = height >> 1;
  }

  // pixels: RGBA. Returns the motion since the last picture; null for the first.
  next(pixels) {
    const [last, now] = [this.#last, this.#pictures(pixels)];
    this.#last = now;
    if (!last) return null;
    let coarse = null;
    for (let size = SIZES - 1; size >= 0; size -= 1) coarse = match(now[size], last[size], coarse, size === 0);
    return this.#field(coarse);
  }

  #pictures(pixels) {
    const [width, height] = [this.#width, this.#height];
    const grey = { width, height, data: new Uint8Array(width * height) };
    for (let y = 0, to = 0; y < height; y += 1) {
      for (let x = 0, at = 8 * y * this.width; x < width; x += 1, at += 8, to += 1) {
        const below = at + 4 * this.width;
        const light = (place) => 2 * pixels[place] + 5 * pixels[place + 1] + pixels[place + 2];
        grey.data[to] = (light(at) + light(at + 4) + light(below) + light(below + 4)) >> 5;
      }
    }
    const all = [grey];
    while (all.length < SIZES) all.push(halved(all.at(-1)));
    return all;
  }

  #field({ columns, rows, x, y, apart }) {
    const field = new Field(columns, rows);
    for (let block = 0; block < columns * rows; block += 1) {
      field.x[block] = 2 * x[block];
      field.y[block] = 2 * y[block];
      field.trust[block] = Math.exp(-((apart[block] / DOUBT_LEVELS) ** 2)) * this.#inside(block, field);
    }
    return field;
  }

  // 1 where the block was in the picture.
  #inside(block, { columns, x, y }) {
    const [left, top] = this.#place(block, columns);
    return Number(left + x[block] > -1 && top + y[block] > -1 && left + x[block] < this.width && top + y[block] < this.height);
  }

  #place(block, columns) {
    return [2 * BLOCK * ((block % columns) + 0.5) - 0.5, 2 * BLOCK * (Math.floor(block / columns) + 0.5) - 0.5];
  }

  // The motion of `first` and then of `then`; first: null for none.
  compose(first, then) {
    if (!first) return then;
    const { columns, rows } = then;
    const both = new Field(columns, rows);
    for (let block = 0; block < columns * rows; block += 1) {
      const [left, top] = this.#place(block, columns);
      const at = (name) => sample(first, name, (left + then.x[block] + 0.5) / (2 * BLOCK) - 0.5, (top + then.y[block] + 0.5) / (2 * BLOCK) - 0.5);
      both.x[block] = then.x[block] + at("x");
      both.y[block] = then.y[block] + at("y");
      both.trust[block] = then.trust[block] * at("trust") * this.#inside(block, both);
    }
    return both;
  }

  // The maps {label, confidence, entropy, ...} after a motion. Where it is not trusted, pixels lose confidence towards equal
  // probabilities of `count` classes.
  carry(maps, field, count) {
    const { width, height } = this;
    const [names, even] = [Object.keys(maps), 255 / count];
    const found = Object.fromEntries(names.map((name) => [name, new Uint8Array(width * height)]));
    const others = names.filter((name) => name !== "confidence" && name !== "entropy");
    const row = ["x", "y", "trust"].map((name) => [field[name], new Float32Array(field.columns)]);
    const [[, xs], [, ys], [, trusts]] = row;
    for (let y = 0, to = 0; y < height; y += 1) {
      const [above, below, part] = between(y, field.rows);
      for (const [values, mixed] of row)
        for (let column = 0; column < field.columns; column += 1) {
          const upper = values[above * field.columns + column];
          mixed[column] = upper + part * (values[below * field.columns + column] - upper);
        }
      for (let x = 0; x < width; x += 1, to += 1) {
        const grid = clamp((x + 0.5) / (2 * BLOCK) - 0.5, field.columns - 1);
        const left = grid | 0;
        const [right, share] = [left + 1 < field.columns ? left + 1 : left, grid - left];
        const fromX = clamp(Math.round(x + xs[left] + share * (xs[right] - xs[left])), width - 1);
        const fromY = clamp(Math.round(y + ys[left] + share * (ys[right] - ys[left])), height - 1);
        const [from, doubt] = [fromY * width + fromX, 1 - trusts[left] - share * (trusts[right] - trusts[left])];
        const lost = LOSS * doubt * doubt;
        const { confidence, entropy } = maps;
        if (confidence[from]) found.confidence[to] = confidence[from] + lost * (even - confidence[from]) + 0.5;
        found.entropy[to] = entropy[from] + lost * (255 - entropy[from]) + 0.5;
        for (const name of others) found[name][to] = maps[name][from];
      }
    }
    return found;
  }
}

// The rows of the grid on both sides of a row of the picture, and its share of the way between them.
function between(y, rows) {
  const grid = clamp((y + 0.5) / (2 * BLOCK) - 0.5, rows - 1);
  return [Math.floor(grid), Math.min(Math.floor(grid) + 1, rows - 1), grid % 1];
}

function sample(field, name, x, y) {
  const { columns, rows, [name]: values } = field;
  const [gridX, gridY] = [clamp(x, columns - 1), clamp(y, rows - 1)];
  const [left, top] = [Math.floor(gridX), Math.floor(gridY)];
  const [right, low] = [Math.min(left + 1, columns - 1), Math.min(top + 1, rows - 1)];
  const line = (row) => values[row * columns + left] + (gridX - left) * (values[row * columns + right] - values[row * columns + left]);
  return line(top) + (gridY - top) * (line(low) - line(top));
}

function halved({ width, height, data }) {
  const [w, h] = [width >> 1, height >> 1];
  const small = new Uint8Array(w * h);
  for (let y = 0, to = 0; y < h; y += 1)
    for (let x = 0, at = 2 * y * width; x < w; x += 1, at += 2, to += 1)
      small[to] = (data[at] + data[at + 1] + data[at + width] + data[at + width + 1] + 2) >> 2;
  return { width: w, height: h, data: small };
}

// Sum of the differences of the block at (left, top) of `now` and the block moved by (x, y) in `last`; it stops above `most`.
function difference(now, last, left, top, x, y, most) {
  const { width, height } = now;
  const [right, low] = [Math.min(left + BLOCK, width), Math.min(top + BLOCK, height)];
  let sum = 0;
  for (let row = top; row < low && sum < most; row += 1) {
    const [mine, theirs] = [row * width, clamp(row + y, height - 1) * width];
    for (let column = left; column < right; column += 1) sum += Math.abs(now.data[mine + column] - last.data[theirs + clamp(column + x, width - 1)]);
  }
  return sum;
}

// Matches all blocks of a size, from the vectors of the next smaller size; `fine`: with parts of pixels.
function match(now, last, coarse, fine) {
  const [columns, rows] = [Math.ceil(now.width / BLOCK), Math.ceil(now.height / BLOCK)];
  const found = { columns, rows, x: new Float32Array(columns * rows), y: new Float32Array(columns * rows), apart: new Float32Array(columns * rows) };
  for (let block = 0; block < columns * rows; block += 1) {
    const [column, row] = [block % columns, Math.floor(block / columns)];
    const [left, top] = [column * BLOCK, row * BLOCK];
    const parent = coarse && Math.min(row >> 1, coarse.rows - 1) * coarse.columns + Math.min(column >> 1, coarse.columns - 1);
    const [expectedX, expectedY] = coarse ? [2 * coarse.x[parent], 2 * coarse.y[parent]] : [0, 0];
    const starts = [[expectedX, expectedY], [0, 0]];
    if (column) starts.push([found.x[block - 1], found.y[block - 1]]);
    if (row) starts.push([found.x[block - columns], found.y[block - columns]]);
    let [best, x, y] = [Infinity, 0, 0];
    const look = (tryX, tryY) => {
      const stray = STRAY * (Math.abs(tryX - expectedX) + Math.abs(tryY - expectedY));
      const cost = stray + difference(now, last, left, top, tryX, tryY, best - stray);
      if (cost < best) [best, x, y] = [cost, tryX, tryY];
    };
    for (const start of starts) look(...start);
    const reach = coarse ? 1 : REACH;
    const [fromX, fromY] = [x, y];
    for (let stepY = -reach; stepY <= reach; stepY += 1) for (let stepX = -reach; stepX <= reach; stepX += 1) if (stepX || stepY) look(fromX + stepX, fromY + stepY);
    [found.x[block], found.y[block]] = [x, y];
  }
  for (const name of ["x", "y"]) found[name] = calmed(found[name], columns, rows);
  if (fine) refine(now, last, found);
  return found;
}

// The median of each value and its eight neighbours.
function calmed(values, columns, rows) {
  return values.map((_, place) => {
    const [column, row, near] = [place % columns, Math.floor(place / columns), []];
    for (let y = -1; y <= 1; y += 1) for (let x = -1; x <= 1; x += 1) near.push(values[clamp(row + y, rows - 1) * columns + clamp(column + x, columns - 1)]);
    return near.sort((a, b) => a - b)[4];
  });
}

// Adds parts of pixels, at the lowest point of a V through three differences, and the mean difference of each block.
function refine(now, last, found) {
  const { columns, rows, x, y, apart } = found;
  for (let block = 0; block < columns * rows; block += 1) {
    const [left, top] = [(block % columns) * BLOCK, Math.floor(block / columns) * BLOCK];
    const at = (stepX, stepY) => difference(now, last, left, top, x[block] + stepX, y[block] + stepY, Infinity);
    const middle = at(0, 0);
    const lowest = (before, after) => {
      const rise = Math.max(before, after) - middle;
      return rise > 0 ? Math.max(-0.5, Math.min(0.5, (0.5 * (before - after)) / rise)) : 0;
    };
    const [partX, partY] = [lowest(at(-1, 0), at(1, 0)), lowest(at(0, -1), at(0, 1))];
    apart[block] = middle / (Math.min(BLOCK, now.width - left) * Math.min(BLOCK, now.height - top));
    [x[block], y[block]] = [x[block] + partX, y[block] + partY];
  }
}
