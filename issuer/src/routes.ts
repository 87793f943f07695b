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
import { beginElsewhere, returnFromElsewhere } from "./upstream/sign-in-elsewhere.ts";

type Rule = (app: App, asked: Asked, served: Served) => Answer | Promise<Answer>;
type StepRule = (step: Step) => Answer | Promise<Answer>;

/** Who may read answers from scripts: anybody, or the origins of the app's clients. */
type Readers = "any" | "clients" | "nobody";

interface Route {
  readonly methods: ReadonlyMap<string, Rule>;
  readonly readers: Readers;
}

const cached = { "cache-control": "public, max-age=300" };
const metadata: Rule = ({ config }) => json(200, metadataOf(config.issuerUrl), cached);

/** By words of clients: a Map has no key but its own. */
const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  route("/.well-known/openid-configuration", "any", ["GET", metadata]),
  route("/.well-known/oauth-authorization-server", "any", ["GET", metadata]),
  route("/jwks.json", "any", ["GET", ({ tokens }) => json(200, tokens.jwks, cached)]),
  route("/authorize", "nobody", ["GET", authorize], ["POST", authorize]),
  route("/token", "clients", ["POST", token]),
  route("/userinfo", "clients", ["GET", userinfo], ["POST", userinfo]),
  route("/revoke", "clients", ["POST", revoke]),
  route("/logout", "nobody", ["GET", logout], ["POST", logout]),
  route("/link", "nobody", ["GET", askLink], ["POST", takeLink]),
  route("/account", "nobody", ["GET", account]),
  route("/account/sessions/end", "nobody", ["POST", endOneSession]),
  route("/account/second-factor", "nobody", ["POST", addSecondFactor]),
  route("/account/second-factor/confirm", "nobody", ["POST", confirm]),
  route("/account/second-factor/remove", "nobody", ["POST", remove]),
  route("/style.css", "nobody", ["GET", styleSheet]),
]);

function route(path: string, readers: Readers, ...methods: [string, Rule][]): [string, Route] {
  return [path, { methods: new Map(methods), readers }];
}

const stepRoutes: ReadonlyMap<string, ReadonlyMap<string, StepRule>> = new Map([
  ["", step(["GET", askAddress], ["POST", takeAddress])],
  ["/second", step(["GET", askSecond], ["POST", takeSecond])],
  ["/code", step(["GET", askCode], ["POST", takeCode])],
  ["/with-google", step(["GET", elsewhere("google")])],
  ["/with-oidc", step(["GET", elsewhere("oidc")])],
]);

function step(...methods: [string, StepRule][]): ReadonlyMap<string, StepRule> {
  return new Map(methods);
}

function elsewhere(provider: string): StepRule {
  return (step) => beginElsewhere(step.providers, step, provider);
}

async function token(app: App, asked: Asked, { pace, proved }: Served): Promise<Answer> {
  const { answer: answered, isProved } = await pace.answer(app, asked);
  if (isProved) proved();
  return answered;
}

/** What serves all apps. */
interface Served extends Pick<Step, "send" | "limited" | "providers"> {
  readonly pace: TokenPace;
  /** The request showed a secret, a token or a code of the app. */
  readonly proved: () => void;
}

/** The route of a request as metrics name it: one of a few words. */
export function routeName(url: string): string {
  const [path = ""] = url.split("?");
  if (routes.has(path)) return path;
  return path.startsWith("/sign-in/") ? "/sign-in" : path.startsWith("/callback/") ? "/callback" : "other";
}

/** The answer of an app to a request. */
export async function answer(app: App, asked: Asked, more: Served): Promise<Answer> {
  const [, id, rest = ""] = /^\/sign-in\/([A-Za-z0-9_-]{16})(\/[a-z-]+)?$/.exec(asked.path) ?? [];
  const method = asked.method === "HEAD" ? "GET" : asked.method;
  if (id !== undefined) {
    const methods = stepRoutes.get(rest);
    const rule = methods?.get(method);
    if (rule !== undefined) return rule({ ...more, app, asked, id });
    return methods === undefined ? plain(404, "There is no such page.") : notAllowed(methods.keys());
  }
  const [, callback] = /^\/callback\/([a-z]+)$/.exec(asked.path) ?? [];
  if (callback !== undefined)
    return asked.method === "GET" ? returnFromElsewhere(more.providers, app, asked, callback) : notAllowed(["GET"]);
  const found = routes.get(asked.path);
  if (found === undefined) return plain(404, "There is no such page.");
  const shared = sharedWith(app, asked, found.readers);
  if (method === "OPTIONS" && shared !== undefined) {
    const allowed = {
      "access-control-allow-methods": [...found.methods.keys()].join(", "),
      "access-control-allow-headers": "authorization, content-type",
      "access-control-max-age": "600",
    };
    return { status: 204, headers: { ...shared, ...allowed }, body: "" };
  }
  const rule = found.methods.get(method);
  if (rule === undefined) return notAllowed(found.methods.keys());
  const answered = await rule(app, asked, more);
  return shared === undefined ? answered : { ...answered, headers: { ...answered.headers, ...shared } };
}

function sharedWith({ config }: App, { origin }: Asked, readers: Readers): Record<string, string> | undefined {
  if (readers === "any") return { "access-control-allow-origin": "*" };
  if (readers === "nobody" || origin === undefined) return undefined;
  const isKnown = config.clients.some(({ allowedOrigins }) => allowedOrigins.includes(origin));
  return isKnown ? { "access-control-allow-origin": origin, vary: "origin" } : undefined;
}

function notAllowed(methods: Iterable<string>): Answer {
  const refused = plain(405, "There is no such method here.");
  return { ...refused, headers: { ...refused.headers, allow: [...methods].join(", ") } };
}
