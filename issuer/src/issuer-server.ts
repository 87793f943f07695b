import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { createSourceBuckets } from "@holdfast/common/concurrency/source-buckets.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createEgress, type Egress } from "@holdfast/egress/create-egress.ts";
import { createCertificates } from "@holdfast/https/certificates.ts";
import type { HttpRequest, HttpResponse } from "@holdfast/https/request-handler.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import type { AppSignIn, OwnNetworks } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "./app.ts";
import { createDerivedKeys } from "./derived-keys.ts";
import { type OutgoingResponse, type IncomingRequest, readRequest, plain, Refused } from "./http/messages.ts";
import type { Metrics } from "./metrics.ts";
import { createTokenKeys } from "./protocol/token-keys.ts";
import { createTokenRateLimit } from "./protocol/token-rate-limit.ts";
import { respond, routeName } from "./routes.ts";
import { createMailRateLimit } from "./sign-in/mail-rate-limit.ts";
import { createMailSender, type MailSenderDeps } from "./sign-in/mail-sender.ts";
import { problemPage } from "./sign-in/page.ts";
import { createDatabase, DatabaseUnavailable, DatabaseBusy } from "./store/database.ts";
import { startAppSweep } from "./app-sweep.ts";
import { createProviders } from "./upstream/provider.ts";

export interface IssuerServer {
  readonly apps: number;
  /** Adds or replaces an app. */
  setApp(config: AppSignIn): void;
  removeApp(appId: string): void;
  /** Sets the platform's own networks, to which egress never connects. */
  setPlatformNetworks(platformNetworks: OwnNetworks): void;
  setTrust(trust: string): void;
  close(): Promise<void>;
}

interface Deps {
  readonly listen: readonly string[];
  readonly clients: ClientAddresses;
  /** Requests without a credential that one source may send in a second; 0 for no limit. */
  readonly rateSource: number;
  /** Default key and certificate, for clients without a server name. */
  readonly key: string;
  readonly certificate: string;
  /** PEM of the private key of the certificates of all apps. */
  readonly hostKey: string;
  readonly trust: string;
  /** Sends a mail report to the controllers. */
  readonly reportMail: MailSenderDeps["reportMail"];
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

const graceMs = 5_000;
/** Burst of a source, in seconds of its rate. */
const burstS = 10;
/**
 * Maximum number of mails of an app that are sent concurrently; the sweep of the app (app-sweep.ts) sends the others.
 */
const maxMailsInFlight = 8;
const hsts = { "strict-transport-security": "max-age=31536000" };

/**
 * The OpenID Connect issuers of all apps in one HTTPS server. The request's host selects the app. Apps arrive by the
 * feed (app-feed.ts); each has its own keys, database connections and limits, and continues without controllers.
 * routes.ts maps paths to handlers; app-sweep.ts sends remaining mails and deletes expired rows.
 */
export async function startIssuerServer(deps: Deps): Promise<IssuerServer> {
  const { hostKey, clock, log } = deps;
  const certificates = createCertificates();
  const byHost = new Map<string, App>();
  const hosts = new Map<string, string>();
  let { trust } = deps;
  const tokenRateLimit = createTokenRateLimit(clock.monotonicMs);
  const providers = createProviders(clock.monotonicMs);
  const mailSender = createMailSender({
    reportMail: deps.reportMail,
    onOutcome: (outcome) => deps.metrics.mail(outcome),
    monotonicMs: clock.monotonicMs,
  });
  const { clients, rateSource } = deps;
  const { sources } = clients;
  const requests = createSourceBuckets(
    { perSecond: rateSource, burst: rateSource * burstS, sources },
    clock.monotonicMs,
  );
  const sending = createKeyedCounter();
  let platformNetworks: OwnNetworks | undefined;
  let egress: Egress | undefined;
  const stopping = new AbortController();

  const connections: App["egress"] = {
    connect: (target) => currentEgress().connect(target),
    request: (url, request) => currentEgress().request(url, request),
  };
  function currentEgress(): Egress["users"] {
    if (egress === undefined) throw new Error("no controller has sent the platform's networks yet");
    return egress.users;
  }

  function send(app: App, mailId: string): void {
    const { appId } = app.config;
    const slot = sending.take([{ key: appId, max: maxMailsInFlight }]);
    if (slot.exceeded !== undefined) return;
    mailSender
      .send(app, mailId, stopping.signal)
      .catch((error: unknown) => {
        log.warn("mail not sent", { app: appId, error: error instanceof Error ? error.name : "unknown" });
      })
      .finally(slot.release);
  }

  async function responseTo(request: HttpRequest, peer: string): Promise<OutgoingResponse> {
    const authority = (request.headers[":authority"] ?? request.headers.host ?? "") as string;
    const app = byHost.get(authority.toLowerCase());
    if (app === undefined) return plain(421, "No app is served under this name.");
    const address = clients.addressOf(peer, request);
    const { waitS } = requests.take(address);
    if (waitS > 0) return tooMany(waitS);
    try {
      const incoming: IncomingRequest = await readRequest(request, app.config.issuerUrl, { address, sources });
      return await respond(app, incoming, {
        send: (mailId) => send(app, mailId),
        reportLimit: (limit) => mailSender.reportLimit(app, limit),
        onProved: () => requests.refund(address),
        providers,
        tokenRateLimit,
      });
    } catch (error) {
      if (error instanceof Refused) return error.response;
      if (error instanceof DatabaseUnavailable) {
        // DatabaseBusy is not logged: a flood of requests would fill the log.
        if (!(error instanceof DatabaseBusy))
          log.warn("database unavailable", { app: app.config.appId, reason: error.message });
        const response = problemPage(app, 503, "Signing in is not possible now. Try again in a few seconds.");
        return { ...response, headers: { ...response.headers, "retry-after": "2" } };
      }
      log.error("request failed", {
        app: app.config.appId,
        error: error instanceof Error ? error.name : "unknown",
        code: codeOf(error),
      });
      return problemPage(app, 500, "An internal error occurred.");
    }
  }

  async function handle(request: HttpRequest, response: HttpResponse, peer = ""): Promise<void> {
    const startedMs = clock.monotonicMs();
    const { status, headers, body } = await responseTo(request, peer);
    deps.metrics.responded(routeName(request.url ?? ""), status, (clock.monotonicMs() - startedMs) / 1_000);
    if (response.destroyed) return;
    const all = { ...headers, ...hsts, "content-length": String(Buffer.byteLength(body)) };
    for (const [name, value] of Object.entries(all)) response.setHeader(name, value);
    response.statusCode = status;
    if (request.method === "HEAD") response.end();
    else response.end(body);
  }

  const appSweep = startAppSweep({ apps: () => [...byHost.values()], mailSender, log });
  const server = createApiServer({
    handler: handle,
    log,
    key: deps.key,
    cert: deps.certificate,
    certificates,
    clients,
  });
  for (const { host, port } of endpointsOf(deps.listen)) await server.listen(port, host);

  function removeApp(appId: string): void {
    const authority = hosts.get(appId);
    const app = authority === undefined ? undefined : byHost.get(authority);
    if (authority === undefined || app === undefined) return;
    hosts.delete(appId);
    byHost.delete(authority);
    certificates.delete(app.config.host);
    app.database.close().catch((error: unknown) => log.warn("database not closed", { app: appId, error }));
  }

  return {
    get apps() {
      return byHost.size;
    },
    setApp(config) {
      const authority = new URL(config.issuerUrl).host;
      const before = byHost.get(authority);
      if (before !== undefined && before.config.appId !== config.appId)
        throw new Error(`${authority} belongs to the app ${before.config.appId}`);
      if (hosts.get(config.appId) !== authority) removeApp(config.appId);
      const address = config.database;
      if (address === undefined) return;
      certificates.set(config.host, { key: hostKey, cert: config.certificate });
      const previousAddress = before?.config.database;
      const isMoved = JSON.stringify(previousAddress) !== JSON.stringify(address);
      const database = before?.database ?? createDatabase(address, trust);
      // An address is empty during a change of the primary; it does not replace the previous one.
      if (before !== undefined && isMoved && address.address !== "") database.moveTo(address, trust);
      const now = clock.now;
      byHost.set(authority, {
        config,
        database,
        keys: createDerivedKeys(config.secret),
        tokens: createTokenKeys(config.keys, config.issuerUrl, now),
        egress: connections,
        mailRateLimit:
          before?.config.mailsPerHour === config.mailsPerHour
            ? before.mailRateLimit
            : createMailRateLimit(clock.monotonicMs, config.mailsPerHour),
        now,
        monotonicMs: clock.monotonicMs,
        log,
      });
      hosts.set(config.appId, authority);
    },
    removeApp,
    setPlatformNetworks(next) {
      if (platformNetworks !== undefined && JSON.stringify(platformNetworks) === JSON.stringify(next)) return;
      platformNetworks = next;
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
      await appSweep.close();
      await server.close(graceMs);
      await Promise.all([...byHost.values()].map(({ database }) => database.close()));
      await egress?.close();
    },
  };
}

function tooMany(waitS: number): OutgoingResponse {
  const seconds = String(Math.ceil(waitS));
  const response = plain(429, `Too many requests came from this address. Try again in ${seconds} s.`);
  return { ...response, headers: { ...response.headers, "retry-after": seconds } };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
