import { connect } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type MailServer, startMailServer } from "@holdfast/testing/servers/mail-server.ts";
import type { EgressClient } from "./egress-client.ts";
import { EgressFailure } from "./egress-failure.ts";
import { checkMailServer } from "./mail-server.ts";

let server: MailServer;
beforeAll(async () => {
  server = await startMailServer({ user: { name: "shop", password: "right" } });
});
afterAll(() => server.close());

const connected: Pick<EgressClient, "connect"> = {
  async connect({ port }) {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return socket;
  },
};
const refused: Pick<EgressClient, "connect"> = {
  connect: () => Promise.reject(new EgressFailure("connect", "The connection was refused.")),
};
const untrusted: Pick<EgressClient, "connect"> = {
  connect: () => Promise.reject(new EgressFailure("tls", "The TLS handshake failed: CERT_HAS_EXPIRED.")),
};

test.each([
  ["refuses the connection", refused, "x", "could not be reached: The connection was refused.", "host and the port"],
  [
    "has an expired certificate",
    untrusted,
    "x",
    "could not be reached: The TLS handshake failed",
    "Use a port with TLS",
  ],
  ["has an unknown authority", connected, "", "no TLS with a certificate that is trusted", "Use a port with TLS"],
  ["refuses the password", connected, "trusted", "refused the user name and password", "may send mail"],
])("a mail server that %s has a reason and a remedy", async (_, egress, trust, reason, remedy) => {
  const settings = {
    host: "127.0.0.1",
    port: server.port,
    username: "shop",
    password: "wrong",
    caCertificate: trust === "trusted" ? server.ca : "",
  };
  const failure = checkMailServer(settings, { egress, deadlineMs: 10_000 }, new AbortController().signal);
  await expect(failure).rejects.toMatchObject({
    message: expect.stringContaining(reason),
    remedy: expect.stringContaining(remedy),
  });
});
