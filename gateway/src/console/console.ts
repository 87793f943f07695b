import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Exchange, headerOf, send } from "../exchange.ts";
import type { Mount } from "../mounts.ts";
import { pagePolicy } from "../docs/page.ts";
import type { ConsoleFile, ConsoleFiles } from "./console-files.ts";

const assets = "/console/assets/";

/**
 * Serves the console, a single page for browsers. Each path below /console/ except those of assets is the page, whose
 * script reads the path; "/" redirects browsers to it. Assets have their digest in their names and never change.
 */
export function createConsole(files: () => Promise<ConsoleFiles>, fail: Mount["fail"]): Mount {
  return {
    name: "console",
    prefix: "/",
    accepts: ({ path, request }) =>
      path === "/console" || path.startsWith("/console/") || (path === "/" && acceptsHtml(headerOf(request, "accept"))),
    async handle(exchange) {
      const { path, request } = exchange;
      if (request.method !== "GET" && request.method !== "HEAD")
        throw new HoldfastError("METHOD_NOT_ALLOWED", "The console is read-only.", { allow: ["GET", "HEAD"] });
      if (path === "/" || path === "/console") return send(exchange, 302, { location: "/console/" }, "");
      const { page, assets: assetsByName } = await files();
      if (!path.startsWith(assets)) return sendFile(exchange, page, pageHeaders);
      const asset = assetsByName.get(path.slice(assets.length));
      if (asset === undefined)
        throw new HoldfastError("NOT_FOUND", "The console has no such file; load the page again.");
      sendFile(exchange, asset, { "cache-control": "public, max-age=31536000, immutable" });
    },
    fail,
  };
}

function acceptsHtml(accept: string | undefined): boolean {
  return accept?.includes("text/html") === true;
}

function sendFile(exchange: Exchange, { type, plain, brotli, gzip }: ConsoleFile, headers: Record<string, string>) {
  const accepted = headerOf(exchange.request, "accept-encoding") ?? "";
  const [encoding, bytes] = /\bbr\b/.test(accepted)
    ? ["br", brotli]
    : /\bgzip\b/.test(accepted)
      ? ["gzip", gzip]
      : [undefined, plain];
  const all = {
    ...headers,
    "content-type": type,
    vary: "accept-encoding",
    "cross-origin-resource-policy": "same-origin",
    ...(encoding !== undefined && { "content-encoding": encoding }),
  };
  send(exchange, 200, all, bytes);
}

/** The policy of the page. Trusted types prevent that texts of users, logs and results become markup. */
const policy = `${pagePolicy}; require-trusted-types-for 'script'; trusted-types 'none'`;

const pageHeaders = {
  "cache-control": "no-store",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "referrer-policy": "no-referrer",
};
