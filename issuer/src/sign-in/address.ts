const form = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/;

/** Is it one plain address that mail can be sent to? */
export function isAddress(text: string): boolean {
  return text.length <= 254 && form.test(text);
}
