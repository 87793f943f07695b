import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:net";
import { readConfig } from "@holdfast/common/config.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createEgress } from "@holdfast/egress/create-egress.ts";
import { expect, onTestFinished, test } from "vitest";
import { type MailServer, type MailServerOptions, startMailServer } from "@holdfast/testing/servers/mail-server.ts";

import { mailSettings } from "./mail-settings.ts";
import { createMailer, headerText, type Mail } from "./mailer.ts";

const user = { name: "holdfast", password: "planted-smtp-password" };
const mail: Mail = { to: "team@example.com", subject: "orders", text: "text", html: "<p>html</p>", id: "one" };

function mailerOf(port: number, { ca = "", more = {} }: { ca?: string; more?: Record<string, string> } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-mail-"));
  const egress = createEgress(
    { users: [], operators: ["127.0.0.0/8"] },
    { listeners: [], addresses: [], members: () => [], loopbackBlock: "127.99", machineAddresses: () => [] },
  );
  onTestFinished(async () => {
    await egress.close();
    rmSync(directory, { recursive: true });
  });
  writeFileSync(join(directory, "ca"), ca);
  writeFileSync(join(directory, "password"), `${user.password}\n`);
  const environment = {
    HOLDFAST_SMTP_HOST: "127.0.0.1",
    HOLDFAST_SMTP_PORT: String(port),
    HOLDFAST_SMTP_FROM: "alerts@example.com",
    HOLDFAST_SMTP_USER: user.name,
    HOLDFAST_SMTP_PASSWORD_FILE: join(directory, "password"),
    HOLDFAST_SMTP_CA: ca === "" ? "" : join(directory, "ca"),
    ...more,
  };
  const mailer = createMailer(readConfig(mailSettings, environment), { egress: egress.operators, log: silentLog });
  if (mailer === undefined) throw new Error("there is a server");
  return mailer;
}

async function serve(options?: MailServerOptions): Promise<MailServer> {
  const server = await startMailServer(options);
  onTestFinished(() => server.close());
  return server;
}

const unhurried = () => new AbortController().signal;

test.each(["starttls", "implicit", "none"] as const)(
  "sends with %s, authenticated by the password file",
  async (tls) => {
    const server = await serve({ user, tls });
    const mailer = mailerOf(server.port, { ca: server.ca, more: { HOLDFAST_SMTP_TLS: tls } });
    await mailer.send({ ...mail, thread: "alert" }, unhurried());
    const [received] = server.received;
    expect(received).toMatchObject({ to: ["team@example.com"], secure: tls !== "none", user: "holdfast" });
    expect(received?.email).toMatchObject({
      from: { address: "alerts@example.com" },
      to: [{ address: "team@example.com" }],
      subject: "orders",
      messageId: "<one@example.com>",
      references: "<alert@example.com>",
    });
    expect(received?.email.text?.trim()).toBe("text");
    expect(received?.email.html).toContain("<p>html</p>");
  },
);

test("refuses servers without TLS or with an unknown certificate", async () => {
  const plain = await serve({ tls: "none" });
  await expect(mailerOf(plain.port).send(mail, unhurried())).rejects.toThrow("The mail server");
  const unknownServer = await serve();
  await expect(mailerOf(unknownServer.port).send(mail, unhurried())).rejects.toThrow("The mail server");
  const implicit = await serve({ tls: "implicit" });
  const more = { HOLDFAST_SMTP_TLS: "implicit" };
  await expect(mailerOf(implicit.port, { more }).send(mail, unhurried())).rejects.toThrow("could not be reached");
  expect([...plain.received, ...unknownServer.received, ...implicit.received]).toEqual([]);
});

test("reports the server's status code and none of its text", async () => {
  const server = await serve({
    admit: () => {
      throw new Error("secret words of the server");
    },
  });
  const sent = mailerOf(server.port, { ca: server.ca, more: { HOLDFAST_SMTP_USER: "" } }).send(mail, unhurried());
  await expect(sent).rejects.toThrow(/^The mail server responded with 550\.$/);
});

test("stops when its signal aborts, however long the server hangs", async () => {
  const greeted = Promise.withResolvers<void>();
  const silent = createServer(() => greeted.resolve());
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void silent.close());
  const address = silent.address();
  const stopping = new AbortController();
  const sent = mailerOf(typeof address === "object" ? (address?.port ?? 0) : 0).send(mail, stopping.signal);
  await greeted.promise;
  stopping.abort(new Error("stopped"));
  await expect(sent).rejects.toThrow("stopped");
});

test("headers have no line breaks from users", async () => {
  const server = await serve();
  const subject = "disk\r\nBcc: victim@example.com\r\n\r\nbody\u2028\u0085\u202e".padEnd(400, "x");
  const mailer = mailerOf(server.port, { ca: server.ca, more: { HOLDFAST_SMTP_USER: "" } });
  await mailer.send({ ...mail, subject }, unhurried());
  expect(server.received[0]?.to).toEqual(["team@example.com"]);
  expect(server.received[0]?.email.bcc ?? []).toEqual([]);
  expect(server.received[0]?.email.subject).toBe(headerText(subject));
  expect(headerText(subject)).toMatch(/^disk Bcc: victim@example\.com body x+$/);
  expect(headerText(subject)).toHaveLength(150);
});

test("invalid settings are refused at start", () => {
  const more = { HOLDFAST_SMTP_FROM: "a@example.com\r\nBcc: b@example.com" };
  expect(() => mailerOf(1, { more })).toThrow("HOLDFAST_SMTP_FROM");
  expect(() => mailerOf(1, { more: { HOLDFAST_SMTP_TLS: "maybe" } })).toThrow("HOLDFAST_SMTP_TLS");
  expect(() => mailerOf(1, { more: { HOLDFAST_SMTP_PASSWORD_FILE: "" } })).toThrow("HOLDFAST_SMTP_PASSWORD_FILE");
});
