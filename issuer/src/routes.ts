import { account, addSecondFactor, confirm, endOneSession, remove } from "./account/account.ts";
import type { App } from "./app.ts";
import { type OutgoingResponse, type IncomingRequest, json, plain } from "./http/messages.ts";
import { authorize } from "./protocol/authorize.ts";
import { logout } from "./protocol/logout.ts";
import { metadataOf } from "./protocol/metadata.ts";
import { revoke } from "./protocol/revoke.ts";
import type { TokenRateLimit } from "./protocol/token-rate-limit.ts";
import { userinfo } from "./protocol/userinfo.ts";
import { styleSheet } from "./sign-in/page.ts";
import {
  getAddress,
  getCode,
  getLink,
  getSecondFactor,
  type Step,
  postAddress,
  postCode,
  postLink,
  postSecondFactor,
} from "./sign-in/steps.ts";
import { beginUpstreamSignIn, upstreamCallback } from "./upstream/upstream-sign-in.ts";

type RouteHandler = (
  app: App,
  incoming: IncomingRequest,
  context: RouteContext,
) => OutgoingResponse | Promise<OutgoingResponse>;
type StepHandler = (step: Step) => OutgoingResponse | Promise<OutgoingResponse>;

/** Origins whose scripts may read responses (CORS): all, the allowed origins of the app's clients, or none. */
type CrossOrigin = "any" | "clients" | "none";

interface Route {
  readonly methods: ReadonlyMap<string, RouteHandler>;
  readonly crossOrigin: CrossOrigin;
}

const cached = { "cache-control": "public, max-age=300" };
const metadata: RouteHandler = ({ config }) => json(200, metadataOf(config.issuerUrl), cached);

/** Routes by path. A Map, because clients choose the keys. */
const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  route("/.well-known/openid-configuration", "any", ["GET", metadata]),
  route("/.well-known/oauth-authorization-server", "any", ["GET", metadata]),
  route("/jwks.json", "any", ["GET", ({ tokens }) => json(200, tokens.jwks, cached)]),
  route("/authorize", "none", ["GET", authorize], ["POST", authorize]),
  route("/token", "clients", ["POST", token]),
  route("/userinfo", "clients", ["GET", userinfo], ["POST", userinfo]),
  route("/revoke", "clients", ["POST", revoke]),
  route("/logout", "none", ["GET", logout], ["POST", logout]),
  route("/link", "none", ["GET", getLink], ["POST", postLink]),
  route("/account", "none", ["GET", account]),
  route("/account/sessions/end", "none", ["POST", endOneSession]),
  route("/account/second-factor", "none", ["POST", addSecondFactor]),
  route("/account/second-factor/confirm", "none", ["POST", confirm]),
  route("/account/second-factor/remove", "none", ["POST", remove]),
  route("/style.css", "none", ["GET", styleSheet]),
]);

function route(path: string, crossOrigin: CrossOrigin, ...methods: [string, RouteHandler][]): [string, Route] {
  return [path, { methods: new Map(methods), crossOrigin }];
}

const stepRoutes: ReadonlyMap<string, ReadonlyMap<string, StepHandler>> = new Map([
  ["", step(["GET", getAddress], ["POST", postAddress])],
  ["/second", step(["GET", getSecondFactor], ["POST", postSecondFactor])],
  ["/code", step(["GET", getCode], ["POST", postCode])],
  ["/with-google", step(["GET", upstreamStep("google")])],
  ["/with-oidc", step(["GET", upstreamStep("oidc")])],
]);

function step(...methods: [string, StepHandler][]): ReadonlyMap<string, StepHandler> {
  return new Map(methods);
}

function upstreamStep(provider: string): StepHandler {
  return (step) => beginUpstreamSignIn(step.providers, step, provider);
}

async function token(
  app: App,
  incoming: IncomingRequest,
  { tokenRateLimit, onProved }: RouteContext,
): Promise<OutgoingResponse> {
  const { response, isProved } = await tokenRateLimit.respond(app, incoming);
  if (isProved) onProved();
  return response;
}

/** Dependencies of handlers that are not part of an app. */
interface RouteContext extends Pick<Step, "send" | "reportLimit" | "providers"> {
  readonly tokenRateLimit: TokenRateLimit;
  /** Called if the request proved a secret, token or code of the app. */
  readonly onProved: () => void;
}

/** The route of a request, as a label of metrics with few values. */
export function routeName(url: string): string {
  const [path = ""] = url.split("?");
  if (routes.has(path)) return path;
  return path.startsWith("/sign-in/") ? "/sign-in" : path.startsWith("/callback/") ? "/callback" : "other";
}

/** Dispatches a request to its handler. */
export async function respond(app: App, incoming: IncomingRequest, context: RouteContext): Promise<OutgoingResponse> {
  const [, id, rest = ""] = /^\/sign-in\/([A-Za-z0-9_-]{16})(\/[a-z-]+)?$/.exec(incoming.path) ?? [];
  const method = incoming.method === "HEAD" ? "GET" : incoming.method;
  if (id !== undefined) {
    const methods = stepRoutes.get(rest);
    const handler = methods?.get(method);
    if (handler !== undefined) return handler({ ...context, app, incoming, id });
    return methods === undefined ? plain(404, "There is no such page.") : notAllowed(methods.keys());
  }
  const [, callback] = /^\/callback\/([a-z]+)$/.exec(incoming.path) ?? [];
  if (callback !== undefined)
    return incoming.method === "GET"
      ? upstreamCallback(context.providers, app, incoming, callback)
      : notAllowed(["GET"]);
  const found = routes.get(incoming.path);
  if (found === undefined) return plain(404, "There is no such page.");
  const corsHeaders = corsHeadersOf(app, incoming, found.crossOrigin);
  if (method === "OPTIONS" && corsHeaders !== undefined) {
    const allowed = {
      "access-control-allow-methods": [...found.methods.keys()].join(", "),
      "access-control-allow-headers": "authorization, content-type",
      "access-control-max-age": "600",
    };
    return { status: 204, headers: { ...corsHeaders, ...allowed }, body: "" };
  }
  const handler = found.methods.get(method);
  if (handler === undefined) return notAllowed(found.methods.keys());
  const response = await handler(app, incoming, context);
  return corsHeaders === undefined ? response : { ...response, headers: { ...response.headers, ...corsHeaders } };
}

function corsHeadersOf(
  { config }: App,
  { origin }: IncomingRequest,
  crossOrigin: CrossOrigin,
): Record<string, string> | undefined {
  if (crossOrigin === "any") return { "access-control-allow-origin": "*" };
  if (crossOrigin === "none" || origin === undefined) return undefined;
  const isAllowed = config.clients.some(({ allowedOrigins }) => allowedOrigins.includes(origin));
  return isAllowed ? { "access-control-allow-origin": origin, vary: "origin" } : undefined;
}

function notAllowed(methods: Iterable<string>): OutgoingResponse {
  const refused = plain(405, "There is no such method here.");
  return { ...refused, headers: { ...refused.headers, allow: [...methods].join(", ") } };
}
