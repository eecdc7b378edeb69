// Errors with a sentence for the user.

export class Trouble extends Error {}

const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]); // a module of one function that uses 128-bit vectors

// Throws Trouble if this browser cannot run the page at all.
export function requireBrowser() {
  if (!globalThis.isSecureContext) {
    throw new Trouble("This address is not secure, so the browser gives neither the camera nor hash checks: open it over https:// or at localhost.");
  }
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(SIMD)) {
    throw new Trouble("This browser has no WebAssembly SIMD, which the network needs: use Chrome 91, Firefox 89, Safari 16.4 or newer.");
  }
  if (typeof OffscreenCanvas !== "function" || !("requestVideoFrameCallback" in HTMLVideoElement.prototype)) {
    throw new Trouble("This browser cannot hand over single video frames: use Chrome 91, Firefox 132, Safari 16.4 or newer.");
  }
}

// Returns what answers a worker's messages, {number, open} or {number, step}, by these two functions.
export const answering = (open, step) => async ({ data }) => {
  try {
    const [result, transferred] = data.open ? [await open(data.open), []] : await step(data.step);
    postMessage({ number: data.number, result }, transferred);
  } catch (error) {
    postMessage({ number: data.number, trouble: sentence(error), expected: error instanceof Trouble });
  }
};

export const sentence = (error) => (error instanceof Trouble ? error.message : `Something failed: ${error?.message ?? error}`);
