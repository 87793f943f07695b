import { pipeline, Readable, type Transform } from "node:stream";

/** The bytes after the transform. An error of the source or of the transform is thrown to the reader. */
export function pipeThrough(source: AsyncIterable<Uint8Array>, transform: Transform): AsyncIterable<Buffer> {
  return pipeline(Readable.from(source), transform, () => {
    // The error also destroys the transform, so the reader receives it.
  });
}
