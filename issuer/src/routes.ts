import { account, addSecondFactor, confirm, endOneSession, remove } from "./account/account.ts";
import type { App } from "./app.ts";
import { type Answer, type Asked, json, plain } from "./http/exchange.ts";
import { authorize } from "./protocol/authorize.ts";
import { logout } from "./protocol/logout.ts";
import { metadataOf } from "./protocol/metadata.ts";
import { revoke } from "./protocol/revoke.ts";
import type { TokenPace } from "./protocol/token-pace.ts";
import { userinfo } from "./protocol/userinfo.ts";
import { styleSheet } from "./sign-in/page.ts";
import { beginElsewhere, returnFromElsewhere } from "./upstream/sign-in-elsewhere.ts";
import {
  askAddress,
  askCode,
  askLink,
  askSecond,
  type Step,
  takeAddress,
  takeCode,
  takeLink,
  takeSecond,
} from "./sign-in/steps.ts";

type Rule = (app: App, asked: Asked, served: Served) => Answer | Promise<Answer>;
type StepRule = (step: Step) => Answer | Promise<Answer>;

/** Who may read answers from scripts: anybody, or the origins of the app's clients. */
type Readers = "any" | "clients" | "nobody";

interface Route {
  readonly methods: Readonly<Record<string, Rule>>;
  readonly readers: Readers;
}

const cached = { "cache-control": "public, max-age=300" };
const metadata: Rule = ({ config }) => json(200, metadataOf(config.issuerUrl), cached);

const routes: Readonly<Record<string, Route>> = {
  "/.well-known/openid-configuration": { methods: { GET: metadata }, readers: "any" },
  "/.well-known/oauth-authorization-server": { methods: { GET: metadata }, readers: "any" },
  "/jwks.json": { methods: { GET: ({ tokens }) => json(200, tokens.jwks, cached) }, readers: "any" },
  "/authorize": { methods: { GET: authorize, POST: authorize }, readers: "nobody" },
  "/token": { methods: { POST: (app, asked, { pace }) => pace.answer(app, asked) }, readers: "clients" },
  "/userinfo": { methods: { GET: userinfo, POST: userinfo }, readers: "clients" },
  "/revoke": { methods: { POST: revoke }, readers: "clients" },
  "/logout": { methods: { GET: logout, POST: logout }, readers: "nobody" },
  "/link": { methods: { GET: askLink, POST: takeLink }, readers: "nobody" },
  "/account": { methods: { GET: account }, readers: "nobody" },
  "/account/sessions/end": { methods: { POST: endOneSession }, readers: "nobody" },
  "/account/second-factor": { methods: { POST: addSecondFactor }, readers: "nobody" },
  "/account/second-factor/confirm": { methods: { POST: confirm }, readers: "nobody" },
  "/account/second-factor/remove": { methods: { POST: remove }, readers: "nobody" },
  "/style.css": { methods: { GET: styleSheet }, readers: "nobody" },
};

const stepRoutes: Readonly<Record<string, Readonly<Record<string, StepRule>>>> = {
  "": { GET: askAddress, POST: takeAddress },
  "/second": { GET: askSecond, POST: takeSecond },
  "/code": { GET: askCode, POST: takeCode },
  "/with-google": { GET: elsewhere("google") },
  "/with-oidc": { GET: elsewhere("oidc") },
};

function elsewhere(provider: string): StepRule {
  return (step) => beginElsewhere(step.providers, step, provider);
}

/** What serves all apps. */
interface Served extends Pick<Step, "send" | "providers"> {
  readonly pace: TokenPace;
}

/** The route of a request as metrics name it: one of a few words. */
export function routeName(url: string): string {
  const [path = ""] = url.split("?");
  if (Object.hasOwn(routes, path)) return path;
  return path.startsWith("/sign-in/") ? "/sign-in" : path.startsWith("/callback/") ? "/callback" : "other";
}

/** The answer of an app to a request. */
export async function answer(app: App, asked: Asked, more: Served): Promise<Answer> {
  const [, id, rest = ""] = /^\/sign-in\/([A-Za-z0-9_-]{16})(\/[a-z-]+)?$/.exec(asked.path) ?? [];
  const method = asked.method === "HEAD" ? "GET" : asked.method;
  if (id !== undefined) {
    const methods = stepRoutes[rest];
    const rule = methods?.[method];
    if (rule !== undefined) return rule({ ...more, app, asked, id });
    return methods === undefined ? plain(404, "There is no such page.") : notAllowed(methods);
  }
  const [, callback] = /^\/callback\/([a-z]+)$/.exec(asked.path) ?? [];
  if (callback !== undefined)
    return asked.method === "GET"
      ? returnFromElsewhere(more.providers, app, asked, callback)
      : notAllowed({ GET: true });
  const route = Object.hasOwn(routes, asked.path) ? routes[asked.path] : undefined;
  if (route === undefined) return plain(404, "There is no such page.");
  const shared = sharedWith(app, asked, route.readers);
  if (method === "OPTIONS" && shared !== undefined) {
    const allowed = {
      "access-control-allow-methods": Object.keys(route.methods).join(", "),
      "access-control-allow-headers": "authorization, content-type",
      "access-control-max-age": "600",
    };
    return { status: 204, headers: { ...shared, ...allowed }, body: "" };
  }
  const rule = Object.hasOwn(route.methods, method) ? route.methods[method] : undefined;
  if (rule === undefined) return notAllowed(route.methods);
  const answered = await rule(app, asked, more);
  return shared === undefined ? answered : { ...answered, headers: { ...answered.headers, ...shared } };
}

function sharedWith({ config }: App, { origin }: Asked, readers: Readers): Record<string, string> | undefined {
  if (readers === "any") return { "access-control-allow-origin": "*" };
  if (readers === "nobody" || origin === undefined) return undefined;
  const isKnown = config.clients.some(({ allowedOrigins }) => allowedOrigins.includes(origin));
  return isKnown ? { "access-control-allow-origin": origin, vary: "origin" } : undefined;
}

function notAllowed(methods: object): Answer {
  const refused = plain(405, "There is no such method here.");
  return { ...refused, headers: { ...refused.headers, allow: Object.keys(methods).join(", ") } };
}
