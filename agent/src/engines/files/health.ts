import { get } from "node:http";
import type { Instance } from "../engine-driver.ts";
import { healthPath, type Server, serverSocket } from "./layout.ts";

/** Resolves if the server responds; rejects with the error of the connection, or with the status. */
export function requestHealth(instance: Instance, server: Server, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socketPath = serverSocket(instance, server);
    const request = get(
      { socketPath, path: healthPath, headers: { host: "localhost" }, agent: false, signal },
      (response) => {
        response.resume();
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the server of ${server} responded with ${response.statusCode}`));
      },
    );
    request.once("error", reject);
  });
}
