/**
 * The JSON Schema pattern of names, tags and labels: no control characters, line separators, or marks of text direction
 * (Unicode bidi controls), which could disguise a text as another one.
 */
export const plainPattern = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$";

const plain = new RegExp(plainPattern, "u");

export function isPlainText(text: string): boolean {
  return plain.test(text);
}
