/** Bytes of a response's length. */
const lengthBytes = 4;
/** A response begins with the correlation id of its request. */
const minResponseBytes = 4;

/** A response is longer than any that the platform reads. */
export class ResponseTooLarge extends Error {
  override readonly name = "ResponseTooLarge";
  readonly bytes: number;

  constructor(bytes: number) {
    super("the broker's response is too large");
    this.bytes = bytes;
  }
}

/**
 * Returns a function that takes the broker's bytes in parts, however they are cut, and calls `onResponse` with each
 * complete response without its length. A large response is copied once, when its last part has come. Throws if a
 * response is longer than `maxBytes`.
 */
export function createResponses(maxBytes: number, onResponse: (response: Buffer) => void): (part: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  /** Bytes of the first response with its length; undefined before its length has come. */
  let expected: number | undefined;

  function join(): Buffer {
    const [only] = parts;
    const all = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts, size);
    parts = [all];
    return all;
  }

  return (part) => {
    parts.push(part);
    size += part.length;
    for (;;) {
      if (expected === undefined) {
        if (size < lengthBytes) return;
        const length = join().readInt32BE();
        if (length > maxBytes) throw new ResponseTooLarge(length);
        if (length < minResponseBytes) throw new Error("the broker's response is too short");
        expected = lengthBytes + length;
      }
      if (size < expected) return;
      const all = join();
      const [response, rest] = [all.subarray(lengthBytes, expected), all.subarray(expected)];
      parts = [rest];
      size = rest.length;
      expected = undefined;
      onResponse(response);
    }
  };
}
