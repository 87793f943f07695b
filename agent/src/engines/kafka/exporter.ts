import { request } from "node:http";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { platform, portsOf, secretFile } from "./layout.ts";

const maxBytes = 1 << 20;

/** Figures of the exporter by name, with their labels as printed, such as `platform_BytesInPerSec{topic="x"}`. */
export async function readExporter(instance: Instance, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const password = await readEngineFile(secretFile(instance));
  const text = await get(instance, password, signal);
  const figures = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([A-Za-z_]\w*(?:\{[^}]*\})?) (\S+)$/.exec(line);
    if (match !== null) figures.set((match[1] ?? "").replace(/,\}$/, "}"), Number(match[2]));
  }
  return figures;
}

function get(instance: Instance, password: string, signal: AbortSignal): Promise<string> {
  const { address } = instance.spec;
  return new Promise((resolve, reject) => {
    const call = request(
      {
        host: address,
        port: portsOf(instance).exporter,
        path: "/metrics",
        auth: `${platform}:${password}`,
        signal,
        agent: false,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
          if (text.length > maxBytes) response.destroy(new Error("the exporter's answer is too large"));
        });
        response.once("error", reject);
        response.once("end", () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`the exporter answered ${response.statusCode}`));
        });
      },
    );
    call.once("error", reject);
    call.end();
  });
}
