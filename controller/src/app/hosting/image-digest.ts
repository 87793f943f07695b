import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import type { ImageReference } from "./image-reference.ts";

/** The platform's registry, as the controller reaches it. */
export interface RegistryEndpoint {
  /** host:port, which is also the first part of the names of its images. */
  readonly address: string;
  /** Certificates of the authorities that its certificate is verified with, PEM. */
  readonly authorities: () => string;
}

export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
}

/**
 * The digest of the image, or the tags of its repository if the registry does not have the image: undefined if it does
 * not have the repository.
 */
export type FoundDigest = { readonly digest: string } | { readonly tags: readonly string[] | undefined };

const deadlineMs = 15_000;
const maxBytes = 64 << 10;
/** Maximum number of tags that are requested for a hint. */
const tagsMax = 20;
/** Types of manifests: an image, or one image for each platform. */
const manifestTypes = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/**
 * Asks the registry for the digest of an image by the protocol of the OCI distribution specification. Rejects if the
 * registry does not respond: the caller repeats it.
 */
export async function findDigest(
  { repository, reference }: ImageReference,
  credential: RegistryCredential,
  registry: RegistryEndpoint,
  signal: AbortSignal,
): Promise<FoundDigest> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]);
  const basic = Buffer.from(`${credential.username}:${credential.password}`).toString("base64");
  const query = new URLSearchParams({ scope: `repository:${repository}:pull`, service: "holdfast-registry" });
  const authorization = await call(
    registry,
    { method: "GET", path: `/auth/token?${query}`, headers: { authorization: `Basic ${basic}` } },
    within,
  );
  if (authorization.status !== 200) throw new Error(`the registry refuses a token with ${authorization.status}`);
  const bearer = { authorization: `Bearer ${tokenOf(authorization.text)}` };
  const manifest = await call(
    registry,
    {
      method: "HEAD",
      path: `/v2/${repository}/manifests/${reference}`,
      headers: { ...bearer, accept: manifestTypes },
    },
    within,
  );
  if (manifest.status === 404) {
    const path = `/v2/${repository}/tags/list?n=${tagsMax}`;
    const list = await call(registry, { method: "GET", path, headers: bearer }, within);
    return { tags: list.status === 404 ? undefined : tagsOf(list) };
  }
  const digest = manifest.headers["docker-content-digest"];
  if (manifest.status !== 200 || typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest))
    throw new Error(`the registry has no digest: status ${manifest.status}`);
  return { digest };
}

/** Tags in the registry's response, sorted; none for a repository whose images are all deleted. */
function tagsOf({ status, text }: RegistryResponse): readonly string[] {
  if (status !== 200) throw new Error(`the registry has no list of tags: status ${status}`);
  const { tags } = JSON.parse(text) as { tags?: unknown };
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string").toSorted() : [];
}

function tokenOf(text: string): string {
  const { token } = JSON.parse(text) as { token?: unknown };
  if (typeof token !== "string") throw new Error("the registry's response has no token");
  return token;
}

interface RegistryResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

function call(
  { address, authorities }: RegistryEndpoint,
  { method, path, headers }: { method: string; path: string; headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<RegistryResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<RegistryResponse>();
  const options = { method, headers, ca: authorities(), agent: false, signal };
  const sent = request(new URL(path, `https://${address}`), options, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.length > maxBytes) response.destroy(new Error("the registry's response is too large"));
    });
    response.once("error", reject);
    response.once("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
  });
  sent.once("error", reject);
  sent.end();
  return promise;
}
