import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createSourceBuckets } from "@holdfast/common/source-buckets.ts";
import { createEgress, type Egress } from "@holdfast/egress/create-egress.ts";
import { createCertificates } from "@holdfast/https/certificates.ts";
import type { HttpRequest, HttpResponse } from "@holdfast/https/request-handler.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import type { AppSignIn, OwnNetworks } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "./app.ts";
import { createDerivedKeys } from "./derived-keys.ts";
import { type Answer, type Asked, askedOf, plain, Refused } from "./http/exchange.ts";
import type { Metrics } from "./metrics.ts";
import { createTokenKeys } from "./protocol/token-keys.ts";
import { createTokenPace } from "./protocol/token-pace.ts";
import { answer, routeName } from "./routes.ts";
import { createMailPace } from "./sign-in/mail-pace.ts";
import { createMailWatch, type MailWatchDeps } from "./sign-in/mail-watch.ts";
import { problemPage } from "./sign-in/page.ts";
import { createDatabase, DatabaseAway, DatabaseBusy } from "./store/database.ts";
import { startUpkeep } from "./upkeep.ts";
import { createProviders } from "./upstream/provider.ts";

export interface IssuerServer {
  readonly apps: number;
  /** Serves the app so from now on. */
  hold(config: AppSignIn): void;
  release(appId: string): void;
  /** Where no server of a user may be. */
  setOwn(own: OwnNetworks): void;
  setTrust(trust: string): void;
  close(): Promise<void>;
}

interface Deps {
  readonly listen: readonly string[];
  readonly clients: ClientAddresses;
  /** Requests of a source without a credential in a second; 0 for no limit. */
  readonly rateSource: number;
  /** Of clients that ask for no name. */
  readonly key: string;
  readonly certificate: string;
  /** PEM of the key that the certificates of all apps are for. */
  readonly hostKey: string;
  readonly trust: string;
  /** Tells controllers of mails. */
  readonly tell: MailWatchDeps["tell"];
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

const graceMs = 5_000;
/** Seconds of its rate that a source may use at once. */
const burstS = 10;
/** Mails of an app on their way at a time; the others stay owed, and upkeep sends them. */
const mailsAtOnce = 8;
const hsts = { "strict-transport-security": "max-age=31536000" };

/** Serves the sign-in of each app under its own name. */
export async function startIssuerServer(deps: Deps): Promise<IssuerServer> {
  const { hostKey, clock, log } = deps;
  const certificates = createCertificates();
  const byHost = new Map<string, App>();
  const hosts = new Map<string, string>();
  let { trust } = deps;
  const pace = createTokenPace(clock.monotonicMs);
  const providers = createProviders(clock.monotonicMs);
  const mails = createMailWatch({
    tell: deps.tell,
    counted: (outcome) => deps.metrics.mail(outcome),
    monotonicMs: clock.monotonicMs,
  });
  const { clients, rateSource } = deps;
  const { sources } = clients;
  const requests = createSourceBuckets(
    { perSecond: rateSource, burst: rateSource * burstS, sources },
    clock.monotonicMs,
  );
  const sending = new Map<string, number>();
  let own: OwnNetworks | undefined;
  let egress: Egress | undefined;
  const stopping = new AbortController();

  const connections: App["egress"] = {
    connect: (target) => egressNow().connect(target),
    request: (url, request) => egressNow().request(url, request),
  };
  function egressNow(): Egress["users"] {
    if (egress === undefined) throw new Error("nobody has told yet where servers of users may be");
    return egress.users;
  }

  function send(app: App, mailId: string): void {
    const { appId } = app.config;
    const underWay = sending.get(appId) ?? 0;
    if (underWay >= mailsAtOnce) return;
    sending.set(appId, underWay + 1);
    mails
      .send(app, mailId, stopping.signal)
      .catch((error: unknown) => {
        log.warn("mail not sent", { app: appId, error: error instanceof Error ? error.name : "unknown" });
      })
      .finally(() => {
        const left = (sending.get(appId) ?? 1) - 1;
        if (left === 0) sending.delete(appId);
        else sending.set(appId, left);
      });
  }

  async function answerOf(request: HttpRequest, peer: string): Promise<Answer> {
    const authority = (request.headers[":authority"] ?? request.headers.host ?? "") as string;
    const app = byHost.get(authority.toLowerCase());
    if (app === undefined) return plain(421, "No app is served under this name.");
    const address = clients.of(peer, request);
    const { waitS } = requests.take(address);
    if (waitS > 0) return tooMany(waitS);
    try {
      const asked: Asked = await askedOf(request, app.config.issuerUrl, { address, sources });
      return await answer(app, asked, {
        send: (mailId) => send(app, mailId),
        limited: (limit) => mails.limited(app, limit),
        proved: () => requests.giveBack(address),
        providers,
        pace,
      });
    } catch (error) {
      if (error instanceof Refused) return error.answer;
      if (error instanceof DatabaseAway) {
        // A flood would fill the log too.
        if (!(error instanceof DatabaseBusy))
          log.warn("database away", { app: app.config.appId, reason: error.message });
        const refused = problemPage(app, 503, "Signing in is not possible now. Try again in a moment.");
        return { ...refused, headers: { ...refused.headers, "retry-after": "2" } };
      }
      log.error("request failed", {
        app: app.config.appId,
        error: error instanceof Error ? error.name : "unknown",
        code: codeOf(error),
      });
      return problemPage(app, 500, "Something went wrong here.");
    }
  }

  async function handle(request: HttpRequest, response: HttpResponse, peer = ""): Promise<void> {
    const beganMs = clock.monotonicMs();
    const { status, headers, body } = await answerOf(request, peer);
    deps.metrics.answered(routeName(request.url ?? ""), status, (clock.monotonicMs() - beganMs) / 1_000);
    if (response.destroyed) return;
    const all = { ...headers, ...hsts, "content-length": String(Buffer.byteLength(body)) };
    for (const [name, value] of Object.entries(all)) response.setHeader(name, value);
    response.statusCode = status;
    if (request.method === "HEAD") response.end();
    else response.end(body);
  }

  const upkeep = startUpkeep({ apps: () => [...byHost.values()], mails, log });
  const server = createApiServer({
    handler: handle,
    log,
    key: deps.key,
    cert: deps.certificate,
    certificates,
    clients,
  });
  for (const { host, port } of endpointsOf(deps.listen)) await server.listen(port, host);

  function release(appId: string): void {
    const authority = hosts.get(appId);
    const app = authority === undefined ? undefined : byHost.get(authority);
    if (authority === undefined || app === undefined) return;
    hosts.delete(appId);
    byHost.delete(authority);
    certificates.release(app.config.host);
    app.database.close().catch((error: unknown) => log.warn("database not closed", { app: appId, error }));
  }

  return {
    get apps() {
      return byHost.size;
    },
    hold(config) {
      const authority = new URL(config.issuerUrl).host;
      const before = byHost.get(authority);
      if (before !== undefined && before.config.appId !== config.appId)
        throw new Error(`${authority} is the app ${before.config.appId}'s`);
      if (hosts.get(config.appId) !== authority) release(config.appId);
      const address = config.database;
      if (address === undefined) return;
      certificates.hold(config.host, { key: hostKey, cert: config.certificate });
      const known = before?.config.database;
      const isMoved = JSON.stringify(known) !== JSON.stringify(address);
      const database = before?.database ?? createDatabase(address, trust);
      // One that has no address for the moment is where it was.
      if (before !== undefined && isMoved && address.address !== "") database.moveTo(address, trust);
      const now = clock.now;
      byHost.set(authority, {
        config,
        database,
        keys: createDerivedKeys(config.secret),
        tokens: createTokenKeys(config.keys, config.issuerUrl, now),
        egress: connections,
        mailPace: before?.mailPace ?? createMailPace(clock.monotonicMs, sources),
        now,
        monotonicMs: clock.monotonicMs,
        log,
      });
      hosts.set(config.appId, authority);
    },
    release,
    setOwn(next) {
      if (own !== undefined && JSON.stringify(own) === JSON.stringify(next)) return;
      own = next;
      const before = egress;
      const { listeners, loopbackBlock, machineAddresses, allowed } = next;
      egress = createEgress(
        { users: allowed, operators: [] },
        { listeners, addresses: [], members: () => [], loopbackBlock, machineAddresses: () => machineAddresses },
      );
      before?.close().catch((error: unknown) => log.warn("connections not closed", { error }));
    },
    setTrust(next) {
      trust = next;
    },
    async close() {
      stopping.abort();
      await upkeep.close();
      await server.close(graceMs);
      await Promise.all([...byHost.values()].map(({ database }) => database.close()));
      await egress?.close();
    },
  };
}

function tooMany(waitS: number): Answer {
  const refused = plain(429, "Too many requests came from this address. Wait a moment.");
  return { ...refused, headers: { ...refused.headers, "retry-after": String(Math.ceil(waitS)) } };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
