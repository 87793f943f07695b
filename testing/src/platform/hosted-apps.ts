import { type Agent, request } from "node:https";
import type { App, Attachment, Operation } from "@holdfast/sdk/index.ts";
import type { AppImages } from "../servers/app-images.ts";
import { waitUntil } from "../wait-until.ts";
import type { Platform } from "./platform.ts";
import { expectStatus } from "./services.ts";

/** A request to an app by its clients. */
export interface AppRequest {
  /** URL of the app, with the port of the ingress. */
  readonly url: string;
  readonly path?: string;
  readonly agent?: Agent;
  /** Body of a POST. */
  readonly body?: Buffer;
}

/** Frequent actions on hosted apps. */
export interface HostedApps {
  get(id: string): Promise<App>;
  /** Creates an app, and resolves with it once its operation has completed. */
  createRunning(name: string, body: Readonly<Record<string, unknown>>): Promise<App>;
  /** The operation of a response once it has ended. */
  ended(requested: Pick<App, "operation">): Promise<Operation>;
  /** Attaches a service or an app; resolves once the deployment has completed. */
  attach(id: string, serviceId: string): Promise<Attachment>;
  /** Status and body of a request, at the loopback address: the test's resolver does not have the app's name. */
  request(target: AppRequest): Promise<{ readonly status: number | undefined; readonly text: string }>;
  /** Exit code and output of a shell script in the container of an app whose program is app-program.mjs. */
  run(url: string, script: string): Promise<string>;
}

const withinMs = 300_000;

export function createHostedApps(platform: Pick<Platform, "rest" | "ca">): HostedApps {
  const { rest } = platform;
  const get = async (id: string) => expectStatus(await rest.get<App>(`/app-services/${id}`), 200).json;

  async function ended({ operation }: Pick<App, "operation">): Promise<Operation> {
    const path = `/operations/${operation?.id ?? ""}`;
    const found = async () => {
      const { status, json } = await rest.get<Operation>(path).catch(() => ({ status: 0, json: undefined }));
      return status === 200 && json !== undefined && json.finished_at !== null ? json : undefined;
    };
    const describe = async () => (await rest.get(path)).text;
    return waitUntil("the operation has ended", found, { withinMs, everyMs: 250, describe });
  }

  async function completed(requested: Pick<App, "operation">): Promise<void> {
    const { status, error } = await ended(requested);
    if (status !== "completed") throw new Error(`the operation is ${status}: ${error?.message}`);
  }

  function send({ url, path = "/", agent, body }: AppRequest) {
    const { hostname, port, host } = new URL(url);
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
    const method = body === undefined ? "GET" : "POST";
    const headers = { host, ...(body && { "content-length": body.length }) };
    const target = { host: "127.0.0.1", port, servername: hostname, ca: platform.ca, method, path, headers };
    const call = request({ ...target, agent: agent ?? false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => resolve({ status: response.statusCode, text }));
      response.once("error", reject);
    });
    call.once("error", reject);
    call.end(body);
    return promise;
  }

  return {
    get,
    ended,
    async createRunning(name, body) {
      const created = expectStatus(await rest.post<App>("/app-services", { name, ...body }), 202).json;
      await completed(created);
      return get(created.id);
    },
    async attach(id, serviceId) {
      const path = `/app-services/${id}/attachments`;
      const attached = expectStatus(await rest.post<Attachment>(path, { service_id: serviceId }), 201).json;
      await completed(attached);
      return attached;
    },
    request: send,
    async run(url, script) {
      const { status, text } = await send({ url, path: `/sh?script=${encodeURIComponent(script)}` });
      if (status !== 200) throw new Error(`${status}: ${text}`);
      return JSON.parse(text) as string;
    },
  };
}

/** Pushes an image of a test as `<organization>/<name>:<tag>` with these variables. */
export async function pushAppImage(
  { admin, rest, ca }: Pick<Platform, "admin" | "rest" | "ca">,
  images: AppImages,
  { name, tag }: { readonly name: string; readonly tag: string },
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { api_key_id: username, api_key_secret: password, registry_url: registry } = admin;
  const me = expectStatus(await rest.get<{ organization_id: string }>("/me"), 200).json;
  const target = { host: new URL(registry).host, username, password, authorities: ca };
  return images.push(target, { repository: `${me.organization_id}/${name}`, tag }, env);
}
