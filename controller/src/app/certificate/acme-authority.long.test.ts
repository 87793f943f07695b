import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type Pebble, pebbleProgram, startPebble } from "@holdfast/testing/servers/pebble.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newPrivateKey } from "./acme-account.ts";
import { type AcmeAuthority, AuthorityRefusal, AuthorityUnavailable, createAcmeAuthority } from "./acme-authority.ts";
import { checkedCertificate } from "./issued-certificate.ts";

const program = await pebbleProgram();
const refused = "refused.example";

describe.skipIf(program.path === undefined)(`an authority: ${program.title}`, { timeout: 120_000 }, () => {
  const accountKey = newPrivateKey();
  const responses = new Map<string, string>();
  let pebble: Pebble;
  let server: Server;

  beforeAll(async () => {
    pebble = await startPebble(program.path ?? "", { refused: [refused], validitySeconds: 300 });
    server = createServer(({ url = "" }, response) => response.end(responses.get(url) ?? ""));
    await new Promise<void>((resolve) => server.listen(pebble.httpPort, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    server?.close();
    await pebble?.close();
  });

  /** A client as another controller has it: with the same account. */
  const open = (): AcmeAuthority =>
    createAcmeAuthority({
      directoryUrl: pebble.directoryUrl,
      email: "admin@holdfast.example",
      authorities: readFileSync(pebble.caFile, "utf8"),
      accountKey: async () => accountKey,
    });

  const reached = (authority: AcmeAuthority, url: string, state: string) =>
    waitUntil(
      `the order is ${state}`,
      async () => ((await authority.stateOf(url)).state === state ? true : undefined),
      {
        withinMs: 60_000,
      },
    );

  test("issues a certificate for the key, while each step is performed by another client", async () => {
    const { url, challenge } = await open().begin("shop.example");
    expect(await open().stateOf(url)).toEqual({ state: "pending", isChallengeOpen: true });
    if (challenge === null) throw new Error("the authority requires a proof");
    responses.set(`/.well-known/acme-challenge/${challenge.token}`, challenge.keyAuthorization);
    await open().answer(challenge);
    await reached(open(), url, "ready");
    const key = newPrivateKey();
    await open().finalize(url, "shop.example", key);
    await reached(open(), url, "valid");
    const response = await open().certificateOf(url);
    const { chain, issuer, expiresAt, renewAt } = checkedCertificate(response, { domain: "shop.example", key });
    expect(chain.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(1);
    expect(issuer).toMatch(/Pebble/);
    const lifetimeMs = 300_000;
    expect(Math.abs(expiresAt - renewAt - lifetimeMs / 3)).toBeLessThan(2_000);
    const of = (domain: string, other: string) => () => checkedCertificate(response, { domain, key: other });
    expect(of("blog.example", key)).toThrow("another name");
    expect(of("shop.example", newPrivateKey())).toThrow("another key");
  });

  test("has the authority's reasons for a refused order and a failed verification", async () => {
    await expect(open().begin(refused)).rejects.toThrow(AuthorityRefusal);
    await expect(open().begin(refused)).rejects.toThrow(/policy|blocked|forbids/i);
    const { url, challenge } = await open().begin("wrong.example");
    if (challenge === null) throw new Error("the authority requires a proof");
    responses.set(`/.well-known/acme-challenge/${challenge.token}`, "something else");
    await open().answer(challenge);
    await reached(open(), url, "invalid");
    expect(await open().stateOf(url)).toMatchObject({ reason: expect.stringMatching(/key authorization/i) });
  });

  test("distinguishes an authority that does not respond, or is another one, from a refusal", async () => {
    const settings = { email: "admin@holdfast.example", accountKey: async () => accountKey };
    const authorities = readFileSync(pebble.caFile, "utf8");
    const absent = createAcmeAuthority({ ...settings, directoryUrl: "https://127.0.0.1:9/dir", authorities });
    await expect(absent.begin("shop.example")).rejects.toThrow(AuthorityUnavailable);
    const unknown = createAcmeAuthority({ ...settings, directoryUrl: pebble.directoryUrl, authorities: "" });
    await expect(unknown.begin("shop.example")).rejects.toThrow(AuthorityUnavailable);
  });
});
