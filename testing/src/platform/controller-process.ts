// A controller's fleet as a separate process, which a test kills: `node controller-process.ts <settings as JSON>`.
import type { TestEtcd } from "../controller/etcd.ts";
import { startController } from "../controller/test-fleet.ts";

const { controllerId, etcdUrl, masterKey, directory, leaseS } = JSON.parse(process.argv[2] ?? "{}") as {
  controllerId: string;
  etcdUrl: string;
  masterKey: string;
  directory: string;
  leaseS: number;
};
const etcd = { url: etcdUrl } as TestEtcd;
const installation = {
  etcd,
  masterKey: Buffer.from(masterKey, "base64"),
  directory,
  controllers: [],
  close: async () => undefined,
};
const controller = await startController(installation, controllerId, { leaseS });
process.stdout.write(`${controller.address}\n`);
