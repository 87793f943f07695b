import { CATALOG, type ErrorKey, errorsByStatus, HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type Exchange, headerOf, send } from "../exchange.ts";
import type { ApiMethod } from "../method.ts";
import { protoComments } from "../openapi/proto-comments.ts";
import { createAssets } from "./assets.ts";
import { escape, page, pagePolicy, referencePage } from "./page.ts";

/**
 * Serves /docs: the API reference, rendered from /openapi.json; a table of all methods, including those without REST;
 * and a page for each error, which the `type` of problem documents names. The pages load no content from other sites.
 */
export function createDocs(methods: readonly ApiMethod[]): (exchange: Exchange) => Promise<void> {
  const pages = new Map([
    ["/docs", referencePage],
    ["/docs/methods", page("Methods", tableOfMethods(methods))],
    ["/docs/errors", page("Errors", tableOfErrors())],
  ]);
  for (const key of Object.keys(CATALOG) as ErrorKey[]) {
    const { status, title, help, grpc } = CATALOG[key];
    const body = `<p>${escape(help)}</p><p>HTTP ${status}, gRPC ${grpc}.</p>`;
    pages.set(`/docs/errors/${key.toLowerCase()}`, page(`${title} (${key.toLowerCase()})`, body));
  }

  const readAsset = createAssets();

  return async (exchange) => {
    const { method } = exchange.request;
    const path = exchange.path === "/docs/" ? "/docs" : exchange.path;
    const html = pages.get(path);
    const asset = html === undefined ? await readAsset(path, headerOf(exchange.request, "accept-encoding")) : undefined;
    if (html === undefined && asset === undefined) throw new HoldfastError("NOT_FOUND", "No page has this path.");
    if (method !== "GET" && method !== "HEAD") {
      throw new HoldfastError("METHOD_NOT_ALLOWED", "Pages are read-only.", { allow: ["GET", "HEAD"] });
    }
    if (asset !== undefined) return send(exchange, 200, asset.headers, asset.bytes);
    const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": pagePolicy };
    send(exchange, 200, headers, html ?? "");
  };
}

function tableOfMethods(methods: readonly ApiMethod[]): string {
  const rows = methods.map((method) => {
    const head = method.rest === undefined ? `gRPC ${method.name}` : `${method.rest.verb} ${method.rest.path}`;
    return `<tr><td><code>${escape(head)}</code></td><td>${escape(lookUp(protoComments, method.name) ?? "")}</td><td>${escape([method.scope, ...method.additionalScopes].join(", "))}</td></tr>`;
  });
  return `<table><tr><th>Method</th><th>Description</th><th>Scope</th></tr>${rows.join("")}</table>`;
}

function tableOfErrors(): string {
  const rows = errorsByStatus.map(([key, entry]) => {
    const code = key.toLowerCase();
    return `<tr><td><a href="/docs/errors/${code}">${code}</a></td><td>${entry.status}</td><td>${escape(entry.title)}</td></tr>`;
  });
  return `<table><tr><th>Code</th><th>HTTP</th><th>Meaning</th></tr>${rows.join("")}</table>`;
}
