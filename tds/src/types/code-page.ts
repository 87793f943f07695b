/** Encodes and decodes code page 1252, the encoding of varchar under the service's collation. */
const decoder = new TextDecoder("windows-1252");
const byCharacter = new Map<string, number>(
  Array.from({ length: 256 }, (_, byte) => [decoder.decode(Uint8Array.of(byte)), byte]),
);
const questionMark = 0x3f;

/** A character that the code page lacks becomes `?`, one for each UTF-16 code unit. */
export function encodeCodePage(text: string): Buffer {
  const bytes = Buffer.allocUnsafe(text.length);
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    bytes[index] = unit < 0x80 ? unit : (byCharacter.get(text.charAt(index)) ?? questionMark);
  }
  return bytes;
}

export function decodeCodePage(bytes: Buffer): string {
  return decoder.decode(bytes);
}
