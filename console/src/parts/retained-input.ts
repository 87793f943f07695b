/**
 * Input of forms that were open when the session ended, by form. It is in memory alone, and a form takes its input when
 * the same user opens it again after the next sign-in.
 */
const inputs = new Map<string, object>();
let user: string | undefined;

export function retainInput(form: string, input: object): void {
  if (Object.keys(input).length > 0) inputs.set(form, input);
}

/** The retained input of a form, which is returned once; an empty object without one. */
export function takeInput(form: string): object {
  const input = inputs.get(form) ?? {};
  inputs.delete(form);
  return input;
}

/** Forgets all input unless this is the user who entered it. */
export function retainInputOf(name: string | undefined): void {
  if (name === undefined || name !== user) inputs.clear();
  user = name;
}
