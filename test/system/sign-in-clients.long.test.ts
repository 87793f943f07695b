import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { testUid } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import type { TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

interface ClientJson {
  readonly client_id: string;
  readonly client_secret: string;
}

const longMs = 300_000;

/** Debian's Apache and Authlib; no DNS of this host has the issuer's name, so they have a hosts file of their own. */
describe("clients of an app's issuer in other languages", { timeout: longMs }, () => {
  const fixture = createSignInUnderTest();
  let image: TestImage | string;
  let issuer = "";
  let directory = "";
  let apache: TemporaryProcess | undefined;

  beforeAll(async () => {
    await fixture.start();
    ({ issuer_url: issuer } = await fixture.enable());
    image = await testImage("signIn");
    directory = mkdtempSync(join(tmpdir(), "holdfast-clients-"));
    chmodSync(directory, 0o755);
    writeFileSync(join(directory, "ca.pem"), fixture.platform.ca);
  }, longMs);
  afterAll(async () => {
    await apache?.end("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
    await fixture.remove();
  }, longMs);

  async function newClient(redirectUri: string): Promise<ClientJson> {
    const body = { name: "judge", type: "confidential", redirect_uris: [redirectUri] };
    return expectStatus(await fixture.platform.rest.post<ClientJson>(fixture.path("/clients"), body), 201).json;
  }

  it("has a page of Apache's that mod_auth_openidc protects", async () => {
    if (typeof image === "string") throw new Error(image);
    const [port = 0] = await freePorts(1);
    const shop = `http://127.0.0.1:${port}`;
    const { client_id: id, client_secret: secret } = await newClient(`${shop}/private/callback`);
    const run = join(directory, "run");
    const pages = join(directory, "pages");
    for (const each of [run, pages, join(pages, "private")]) mkdirSync(each, { recursive: true });
    writeFileSync(join(pages, "private", "index.html"), "for signed-in users only\n");
    if (process.getuid?.() === 0) chownSync(run, testUid, testUid);
    const discovered = (await fixture.discover()).serverMetadata();
    const modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "dir", "mime", "auth_openidc"];
    writeFileSync(
      join(directory, "apache.conf"),
      [
        ...modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
        `ServerRoot ${run}`,
        `PidFile ${run}/pid`,
        `DefaultRuntimeDir ${run}`,
        `ServerName 127.0.0.1`,
        `Listen 127.0.0.1:${port}`,
        `ErrorLog "|/bin/cat"`,
        `LogLevel notice`,
        `TypesConfig /etc/mime.types`,
        `DocumentRoot ${pages}`,
        `OIDCProviderIssuer ${issuer}`,
        `OIDCProviderAuthorizationEndpoint ${discovered.authorization_endpoint}`,
        `OIDCProviderTokenEndpoint ${discovered.token_endpoint}`,
        `OIDCProviderUserInfoEndpoint ${discovered.userinfo_endpoint}`,
        `OIDCProviderJwksUri ${discovered.jwks_uri}`,
        `OIDCProviderTokenEndpointAuth client_secret_basic`,
        `OIDCCABundlePath ${directory}/ca.pem`,
        `OIDCClientID ${id}`,
        `OIDCClientSecret ${secret}`,
        `OIDCRedirectURI ${shop}/private/callback`,
        `OIDCCryptoPassphrase of-a-test-and-long-enough`,
        `OIDCScope "openid email"`,
        `OIDCPKCEMethod S256`,
        `OIDCRemoteUserClaim email`,
        `OIDCCookieSameSite On`,
        `<Location "/private">`,
        `  AuthType openid-connect`,
        `  Require valid-user`,
        `</Location>`,
      ].join("\n"),
    );
    apache = await image.start(
      withName(directory, issuer, ["apache2", "-f", join(directory, "apache.conf"), "-DFOREGROUND"]),
      [directory],
      /resuming normal operations/,
    );
    const browser = fixture.browser();
    const page = await browser.get(`${shop}/private/`);
    expect(new URL(page.url).origin).toBe(issuer);
    const codePage = await browser.submit(page, { email: "apache@example.com" });
    const { code } = await fixture.mailTo("apache@example.com");
    const lastPage = await browser.submit(codePage, { code });
    expect(lastPage.text).toContain("for signed-in users only");
  });

  it("issues tokens that Authlib verifies and refreshes", async () => {
    if (typeof image === "string") throw new Error(image);
    const callback = "http://127.0.0.1:9/callback";
    const { client_id: id, client_secret: secret } = await newClient(callback);
    const program = join(directory, "authlib_client.py");
    writeFileSync(program, authlib);
    const env = {
      ISSUER: issuer,
      CLIENT_ID: id,
      CLIENT_SECRET: secret,
      CALLBACK: callback,
      REQUESTS_CA_BUNDLE: join(directory, "ca.pem"),
    };
    const testImage = image;
    const python = (...args: string[]) =>
      testImage.run(withName(directory, issuer, ["python3", program, ...args]), [directory], env);
    const started = JSON.parse(await python("begin")) as { url: string; state: string; verifier: string };
    const browser = fixture.browser();
    const page = await browser.get(started.url);
    const codePage = await browser.submit(page, { email: "authlib@example.com" });
    const { code } = await fixture.mailTo("authlib@example.com");
    const lastPage = await browser.submit(codePage, { code }, { stopAt: callback });
    const ended = JSON.parse(await python("end", lastPage.url, started.state, started.verifier)) as object;
    expect(ended).toEqual({ email: "authlib@example.com", issuer, refreshed: true, again: "authlib@example.com" });
  });
});

/** Command line that runs a program with its own hosts file, where the issuer's name is at loopback. */
function withName(directory: string, issuer: string, argv: readonly string[]): string[] {
  const hosts = join(directory, "hosts");
  writeFileSync(hosts, `127.0.0.1 localhost ${new URL(issuer).hostname}\n`);
  return [
    "/usr/bin/unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    `mount --bind ${hosts} /etc/hosts && exec "$@"`,
    "sh",
    ...argv,
  ];
}

const authlib = `
import json, os, sys
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import jwt, JsonWebKey
import requests

issuer = os.environ["ISSUER"]
client_id = os.environ["CLIENT_ID"]
metadata = requests.get(issuer + "/.well-known/openid-configuration").json()
session = OAuth2Session(
    client_id, os.environ["CLIENT_SECRET"], scope="openid email offline_access",
    redirect_uri=os.environ["CALLBACK"], code_challenge_method="S256",
)

def claims_of(token):
    keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"]).json())
    claims = jwt.decode(token["id_token"], keys, claims_options={
        "iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id},
    })
    claims.validate()
    return claims

if sys.argv[1] == "begin":
    verifier = "v" * 64
    url, state = session.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier)
    print(json.dumps({"url": url, "state": state, "verifier": verifier}))
else:
    _, _, url, state, verifier = sys.argv
    token = session.fetch_token(metadata["token_endpoint"], authorization_response=url, state=state, code_verifier=verifier)
    claims = claims_of(token)
    again = session.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"])
    print(json.dumps({
        "email": claims["email"], "issuer": claims["iss"],
        "refreshed": again["refresh_token"] != token["refresh_token"], "again": claims_of(again)["email"],
    }))
`;
