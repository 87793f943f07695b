import { pipeline, Readable, type Transform } from "node:stream";

/** The bytes after the transform; what fails before it or in it is thrown to who reads them. */
export function through(source: AsyncIterable<Uint8Array>, transform: Transform): AsyncIterable<Buffer> {
  return pipeline(Readable.from(source), transform, () => {
    // The error has destroyed the transform as well: its reader sees it.
  });
}
