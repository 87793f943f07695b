/** Tells of each gRPC message in a stream of bytes, by its length alone. */
export function createFrameReader(onMessage: () => void): (bytes: Buffer) => void {
  let kept: Buffer = Buffer.alloc(0);
  return (bytes) => {
    kept = kept.length === 0 ? bytes : Buffer.concat([kept, bytes]);
    let at = 0;
    while (kept.length - at >= 5) {
      const end = at + 5 + kept.readUInt32BE(at + 1);
      if (kept.length < end) break;
      at = end;
      onMessage();
    }
    kept = kept.subarray(at);
  };
}
