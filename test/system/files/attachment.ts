import type { KeyJson } from "./key.ts";

/** An attachment of an app, as the call that created it responds. */
export interface AttachmentJson {
  readonly id: string;
  readonly kind: string;
  readonly database_name: string;
  readonly access_key_id: string;
  readonly variables: readonly { readonly name: string; readonly value: string }[];
}

/** The key that an app reads in its variables; it has only one files service. */
export function attachedKey({ id, variables }: AttachmentJson): KeyJson {
  const values = new Map(variables.map(({ name, value }) => [name, value]));
  const [accessKeyId, secret] = [values.get("S3_ACCESS_KEY"), values.get("S3_SECRET")];
  if (accessKeyId === undefined || secret === undefined)
    throw new Error(`the variables are ${[...values.keys()].join(", ")}`);
  return { id, name: "", access: "", access_key_id: accessKeyId, secret_access_key: secret };
}
