// Maps as pictures, as Python's draw_overlay and draw_uncertainty make them, and the shares that the page shows.

const UNSURE = 128; // below this confidence the other classes together are more likely than the shown one

// RGBA of the frame with the classes' colours over it, faded by `strength` for each level of confidence; hidden classes and
// pixels without an answer keep the frame's own.
export function overlay(pixels, { label, confidence }, classes, { opacity, hidden, strength }) {
  const drawn = new Uint8ClampedArray(pixels.length);
  const [colors, shown] = [new Float32Array(3 * 256), new Uint8Array(256)];
  classes.forEach(({ color }, index) => colors.set(color, 3 * index));
  shown.fill(1, 0, classes.length);
  for (const index of hidden) shown[index] = 0;
  for (let place = 0, at = 0; place < label.length; place += 1, at += 4) {
    const kind = label[place];
    const share = shown[kind] && confidence[place] ? opacity * strength[confidence[place]] : 0;
    for (let channel = 0; channel < 3; channel += 1)
      drawn[at + channel] = pixels[at + channel] + share * (colors[3 * kind + channel] - pixels[at + channel]);
    drawn[at + 3] = 255;
  }
  return drawn;
}

// RGBA of a map by the table of 256 colours.
export function shaded(map, shades) {
  const table = new Uint32Array(256);
  new Uint8Array(table.buffer).set(shades.flatMap((color) => [...color, 255]));
  const drawn = new Uint32Array(map.length);
  for (let place = 0; place < map.length; place += 1) drawn[place] = table[map[place]];
  return new Uint8ClampedArray(drawn.buffer);
}

// Stretches the energy: full brightness at level 128, which one pixel in a hundred of the training recordings exceeds.
export const stretchedEnergy = (map) => map.map((level) => 2 * Math.min(level, 127));

// Mean confidence, the share of unsure pixels and of each class, all in 0..1.
export function summary(label, confidence, count) {
  const counts = new Uint32Array(256);
  let [sum, unsure] = [0, 0];
  for (let place = 0; place < label.length; place += 1) {
    counts[label[place]] += 1;
    sum += confidence[place];
    if (confidence[place] < UNSURE) unsure += 1;
  }
  const all = label.length;
  return { confidence: sum / 255 / all, unsure: unsure / all, shares: Array.from(counts.subarray(0, count), (one) => one / all) };
}

// Reads the pixels of bitmaps at the network's size.
export class Paper {
  #size;
  #sheet;

  constructor({ width, height }) {
    this.#size = [0, 0, width, height];
    this.#sheet = new OffscreenCanvas(width, height).getContext("2d", { alpha: false, willReadFrequently: true });
    this.#sheet.imageSmoothingQuality = "high";
  }

  // RGBA of the part `crop`, [x, y, width, height], of a bitmap, which is consumed.
  read(bitmap, crop) {
    this.#sheet.drawImage(bitmap, ...crop, ...this.#size);
    bitmap.close();
    return this.#sheet.getImageData(...this.#size).data;
  }
}

// The answer of a step: [{facts, overlay, shade}, what is transferred with it].
export function drawn(pixels, maps, facts, view, { width, classes, strength, shades }) {
  const picture = (colors) => {
    const sheet = new OffscreenCanvas(width, colors.length / 4 / width);
    sheet.getContext("2d", { alpha: false }).putImageData(new ImageData(colors, width), 0, 0);
    return sheet.transferToImageBitmap();
  };
  const second = view.second === "energy" && maps.energy ? stretchedEnergy(maps.energy) : maps.entropy;
  const pictures = [picture(overlay(pixels, maps, classes, { ...view, strength })), picture(shaded(second, shades))];
  return [{ facts, overlay: pictures[0], shade: pictures[1] }, pictures];
}
