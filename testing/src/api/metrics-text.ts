import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { text } from "node:stream/consumers";
import type { Platform } from "../platform/platform.ts";

/**
 * Text that Prometheus would scrape at the path, with the owner's credential unless another one is given. Throws
 * for any status but 200.
 */
export async function metricsText(
  { admin, ca }: Pick<Platform, "admin" | "ca">,
  path: string,
  credential = { name: admin.api_key_id, secret: admin.api_key_secret },
): Promise<string> {
  const auth = `${credential.name}:${credential.secret}`;
  const response = get(`${admin.base_url}${path}`, { ca, auth, servername: "" });
  const [answer] = (await once(response, "response")) as [IncomingMessage];
  const body = await text(answer);
  const type = answer.headers["content-type"];
  if (answer.statusCode === 200 && type === "text/plain; version=0.0.4; charset=utf-8") return body;
  throw new Error(`GET ${path}: ${answer.statusCode} ${type} ${body}`);
}
