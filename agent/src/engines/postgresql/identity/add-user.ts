import { authSchema } from "@holdfast/common/auth-schema/names.ts";
import type { Session } from "../session.ts";

/** The same again finds its own. No constraint is violated by it: that would print the address into the log. */
export async function addUser(
  session: Session,
  { id, email }: { readonly id: string; readonly email: string },
): Promise<boolean> {
  await session.rows(`INSERT INTO ${authSchema}.users (id, email) VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, email]);
  const [found] = await session.rows<{ id: string }>(`SELECT id FROM ${authSchema}.users WHERE email = $1`, [email]);
  return found?.id === id;
}
