import { CATALOGUE, type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import { type Exchange, send } from "./exchange.ts";
import type { ApiMethod } from "./method.ts";
import { protoComments } from "./openapi/proto-comments.ts";

/** Serves /docs: the methods, the errors, and a page for each error that problem documents point to. */
export function createDocs(methods: readonly ApiMethod[], baseUrl: string): (exchange: Exchange) => Promise<void> {
  const pages = new Map<string, string>([["/docs", page("Holdfast API", indexOf(methods, baseUrl))]]);
  for (const key of Object.keys(CATALOGUE) as ErrorKey[]) {
    const { status, title, help, grpc } = CATALOGUE[key];
    const body = `<p>${escape(help)}</p><p>HTTP ${status}, gRPC ${grpc}.</p><p><a href="/docs">All errors</a></p>`;
    pages.set(`/docs/errors/${key.toLowerCase()}`, page(`${title} (${key.toLowerCase()})`, body));
  }
  return async (exchange) => {
    const html = pages.get(exchange.path === "/docs/" ? "/docs" : exchange.path);
    const { method } = exchange.request;
    if (html === undefined) throw new HoldfastError("NOT_FOUND", "No page has this path.");
    if (method !== "GET" && method !== "HEAD") {
      throw new HoldfastError("METHOD_NOT_ALLOWED", "Pages are read only.", { allow: ["GET", "HEAD"] });
    }
    const headers = {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    };
    send(exchange, 200, headers, html);
  };
}

function indexOf(methods: readonly ApiMethod[], baseUrl: string): string {
  const calls = methods.map((method) => {
    const head = method.rest === undefined ? `gRPC ${method.name}` : `${method.rest.verb} ${method.rest.path}`;
    return `<tr><td><code>${escape(head)}</code></td><td>${escape(protoComments[method.name] ?? "")}</td><td>${escape(method.scope)}</td></tr>`;
  });
  const errors = Object.entries(CATALOGUE).map(([key, entry]) => {
    const code = key.toLowerCase();
    return `<tr><td><a href="/docs/errors/${code}">${code}</a></td><td>${entry.status}</td><td>${escape(entry.title)}</td></tr>`;
  });
  return [
    `<p>The whole contract for programs is <a href="/openapi.json">${escape(baseUrl)}/openapi.json</a>; gRPC has reflection.</p>`,
    `<h2>Methods</h2><table>${calls.join("")}</table>`,
    `<h2>Errors</h2><table>${errors.join("")}</table>`,
  ].join("");
}

function page(title: string, body: string): string {
  const style =
    "body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}td{padding:.2rem .8rem .2rem 0;vertical-align:top}";
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(title)}</title><style>${style}</style><h1>${escape(title)}</h1>${body}</html>`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
