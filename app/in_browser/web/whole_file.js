// Files of this folder, checked by the hashes of its manifest.
import { Trouble } from "./trouble.js";

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

async function ask(url, name, cache = "default") {
  let response;
  try {
    response = await fetch(url, { cache });
  } catch {
    throw new Trouble(`${name} cannot be fetched: the server does not answer.`);
  }
  if (!response.ok) throw new Trouble(`${name} is not there (the server answers ${response.status}): copy the whole folder to the server.`);
  return response;
}

export async function readManifest(base) {
  const response = await ask(new URL("manifest.json", base), "manifest.json");
  const manifest = await response.json().catch(() => null);
  if (manifest?.format !== "steadyseg-web-1") {
    throw new Trouble("manifest.json is damaged or of another version: export the folder again.");
  }
  return manifest;
}

async function unpacked(bytes) {
  const content = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(content).arrayBuffer());
}

// Returns the unpacked bytes of a file {path, bytes, sha256} of the manifest. A stale copy in the browser's cache is fetched again.
export async function wholeFile(base, file) {
  let bytes;
  for (const cache of ["default", "reload"]) {
    const response = await ask(new URL(file.path, base), file.path, cache);
    bytes = await response.arrayBuffer().catch(() => new ArrayBuffer(0));
    const found = hex(await crypto.subtle.digest("SHA-256", bytes));
    if (found === file.sha256) return file.path.endsWith(".packed") ? unpacked(bytes) : new Uint8Array(bytes);
  }
  const what = bytes.byteLength < file.bytes
    ? `is cut off (${bytes.byteLength} of ${file.bytes} bytes)`
    : "is not the file that this page was made with (its hash differs)";
  throw new Trouble(`${file.path} ${what}: copy it again or export the folder again.`);
}
