import type { App } from "../answers.ts";
import { NotFound } from "../errors.ts";
import type { Context } from "./context.ts";

/** An app by name, or by id. Throws NotFound. */
export async function appOf({ client, signal }: Context, nameOrId: string): Promise<App> {
  if (/^\d/.test(nameOrId)) return client.apps.get(nameOrId, { signal });
  for await (const app of client.apps.list()) if (app.name === nameOrId) return app;
  const detail = `there is no app ${nameOrId}`;
  const problem = { type: "about:blank", title: detail, status: 404, detail, instance: "", code: "app_not_found" };
  throw new NotFound({ ...problem, errors: [] });
}
