/** A key of a files service, with its secret in the response of its creation alone. */
export interface KeyJson {
  readonly id: string;
  readonly name: string;
  readonly access: string;
  readonly access_key_id: string;
  readonly secret_access_key?: string | null;
}
