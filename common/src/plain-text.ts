/**
 * Characters that no name has: control characters and line separators, marks of text direction (Unicode bidi controls),
 * characters without a glyph (soft hyphen, zero-width spaces, fillers, invisible operators, tags), which could
 * disguise a string as another one, code points for private use, and noncharacters. The joiners U+200C and U+200D are
 * allowed: scripts and emoji need them.
 */
const hidden = [
  "\\u0000-\\u001f\\u007f-\\u009f",
  "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069",
  "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u2060-\\u2065\\u206a-\\u206f",
  "\\u2800\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb",
  "\\ue000-\\uf8ff\\ufdd0-\\ufdef\\ufffe\\uffff",
  // Not escaped: `\\u{...}` is not valid in patterns of other languages, which read the published schema.
  "\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{efffe}-\u{10ffff}",
  // The last two code points of planes 1 to 13.
  ...Array.from({ length: 13 }, (_, plane) =>
    String.fromCodePoint(0x1fffe + plane * 0x10000, 0x1ffff + plane * 0x10000),
  ),
];

/** The JSON Schema pattern of names, tags and labels. */
export const plainPattern = `^[^${hidden.join("")}]*$`;

const plain = new RegExp(plainPattern, "u");

export function isPlainText(text: string): boolean {
  return plain.test(text);
}
