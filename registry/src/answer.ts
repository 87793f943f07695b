/** A response of the registry's front itself, with a body in JSON. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

/** An error in the form that clients of registries print (distribution specification of OCI, "Error Codes"). */
export function refusal(status: number, code: string, message: string): Answer {
  return { status, headers: {}, body: { errors: [{ code, message }] } };
}
