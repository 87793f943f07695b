import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { expect, onTestFinished, test } from "vitest";
import { endpointText } from "./endpoint.ts";
import { listenAt, reportedListeners } from "./open-listeners.ts";

test("a listener on all addresses is reported at each address of this host", async () => {
  const [everywhere, here] = [createServer(), createServer()];
  onTestFinished(() => {
    for (const server of [everywhere, here]) server.close();
  });
  const port = await listenAt(everywhere, { host: "0.0.0.0", port: 0 });
  const other = await listenAt(here, { host: "127.0.0.1", port: 0 });
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list?.map(({ address }) => address) ?? [])
    .filter((address) => !address.startsWith("fe80:"));
  expect(addresses.length).toBeGreaterThan(0);
  const reported = reportedListeners([{ host: "192.0.2.1", port: 8_452 }]);
  expect(reported.toSorted()).toEqual(
    [
      "192.0.2.1:8452",
      `127.0.0.1:${other}`,
      ...["0.0.0.0", ...addresses].map((address) => endpointText(address, port)),
    ].toSorted(),
  );
});
