import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Clock } from "@holdfast/common/clock.ts";
import { createTokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import type { Log } from "@holdfast/common/log.ts";
import { SignJWT } from "jose";
import { loginPage } from "./login-page.ts";
import type { Route } from "./route-table.ts";

/** Path of the form, which no app with a login form gets. */
export const loginPath = "/.well-known/holdfast-login";
/** Header by which HAProxy names the app of a request. */
export const appHeader = "x-holdfast-app";
/** Host-only, so that no other host can set it (RFC 6265bis, 4.1.3.2). */
export const loginCookie = "__Host-holdfast-login";

const sessionS = 12 * 3_600;
const username = "admin";
/** Attempts of one source at one app. */
const attempts = { burst: 5, perSecond: 5 / 60 } as const;
const bodyMax = 4_096;
const pathMax = 2_000;

export interface LoginServerDeps {
  readonly socket: string;
  /** User of HAProxy, the only client; undefined without root. */
  readonly uid: number | undefined;
  readonly routeOf: (appId: string) => Pick<Route, "login"> | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface LoginServer {
  close(): Promise<void>;
}

/**
 * The login form of apps that have one. HAProxy passes requests without a valid session to it; a session is a signed
 * cookie (RFC 7519) with the key of the app, so that HAProxy verifies it alone and no session is stored.
 */
export async function startLoginServer({ socket, uid, routeOf, clock, log }: LoginServerDeps): Promise<LoginServer> {
  const buckets = createTokenBuckets(attempts, clock.monotonicMs);

  async function signIn(request: IncomingMessage, response: ServerResponse, appId: string): Promise<void> {
    const login = routeOf(appId)?.login;
    const { origin, host = "" } = request.headers;
    if (login === undefined) return refuse(response, 404, "This app has no login form.");
    if (origin !== undefined && !isOriginOf(origin, host)) return refuse(response, 403, "The form is of another site.");
    const { waitS } = buckets.take(`${appId} ${String(request.headers["x-forwarded-for"] ?? "")}`, 1);
    if (waitS > 0) {
      response.setHeader("retry-after", String(Math.ceil(waitS)));
      return refuse(response, 429, "There were too many attempts. Try again later.");
    }
    if (Number(request.headers["content-length"] ?? bodyMax + 1) > bodyMax)
      return refuse(response, 413, "The form is too long.");
    const form = new URLSearchParams(await text(request));
    const returnTo = localPath(form.get("return_to") ?? "/");
    const isRight = form.get("username") === username && matches(form.get("password") ?? "", login.passwordHash);
    if (!isRight) return showPage(response, returnTo, "The user name or the password is wrong.");
    const now = Math.floor(clock.now() / 1_000);
    const token = await new SignJWT({})
      .setProtectedHeader({ alg: "HS256" })
      .setIssuedAt(now)
      .setExpirationTime(now + sessionS)
      .sign(new TextEncoder().encode(login.key));
    const cookie = `${loginCookie}=${token}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${sessionS}`;
    response.writeHead(303, { location: returnTo, "set-cookie": cookie, "cache-control": "no-store" }).end();
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const appId = String(request.headers[appHeader] ?? "");
    const { method = "GET", url = "/" } = request;
    const [path] = url.split("?", 1);
    if (method === "POST" && path === loginPath) return signIn(request, response, appId);
    if (request.headers.accept?.includes("text/html") !== true) return refuse(response, 401, "Sign in first.");
    showPage(response, method === "GET" && path !== loginPath ? localPath(url) : "/", "");
  }

  const server = createServer({ keepAliveTimeout: 60_000, maxHeaderSize: 32_768 }, (request, response) => {
    respond(request, response).catch((error: unknown) => {
      log.warn("login form failed", { error });
      response.destroy();
    });
  });
  await rm(socket, { force: true });
  server.listen(socket);
  await once(server, "listening");
  await chmod(socket, 0o600);
  if (uid !== undefined) await chown(socket, uid, uid);
  return {
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The path itself if a redirect to it stays at the app; otherwise the start page. */
export function localPath(path: string): string {
  const isLocal = path.length <= pathMax && /^\/(?![/\\])[!-~]*$/.test(path) && !path.includes("\\");
  return isLocal ? path : "/";
}

function isOriginOf(origin: string, host: string): boolean {
  return origin === `https://${host}`;
}

/** `hash`: SHA-256 in hex. Passwords are generated, so that a fast hash protects them. */
function matches(password: string, hash: string): boolean {
  const presented = createHash("sha256").update(password).digest();
  const expected = Buffer.from(hash, "hex");
  return presented.length === expected.length && timingSafeEqual(presented, expected);
}

function refuse(response: ServerResponse, status: number, message: string): void {
  const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", connection: "close" };
  response.writeHead(status, headers).end(`${message}\n`);
}

function showPage(response: ServerResponse, returnTo: string, fault: string): void {
  response
    .writeHead(401, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
      connection: "close",
    })
    .end(loginPage({ action: loginPath, returnTo, fault }));
}
