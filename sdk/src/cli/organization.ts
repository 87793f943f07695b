import type { Client } from "../client.ts";
import { UsageError } from "./exit-code.ts";

/** Id of the organization that the credential acts in. */
export async function organizationOf(client: Client): Promise<string> {
  const { organization_id: id } = await client.me();
  if (id === null) throw new UsageError("name the organization: --organization, or HOLDFAST_ORGANIZATION");
  return id;
}
