const pattern = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/;

/** True for a single plain address to which mail can be sent. */
export function isEmailAddress(text: string): boolean {
  return text.length <= 254 && pattern.test(text);
}
