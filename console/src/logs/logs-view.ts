/**
 * A line of a log as text. Control characters, which a terminal would obey, and characters that change the direction of
 * text are visible escapes; tabs and line ends are unchanged.
 */
export function visibleText(message: string): string {
  return message.replaceAll(controls, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

// oxlint-disable-next-line no-control-regex -- it finds them to show them
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g;
