import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";
import { localModule } from "../local-module.ts";

/** What the local installation gives for `admin restore`; it runs while the platform is down. */
interface LocalRestore {
  restoreControlPlane(options: {
    readonly dataDirectory: string;
    readonly backupId: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<void>;
}

/** Snapshots of the control plane itself. */
export function addRecovery(admin: CliCommand): void {
  admin
    .command("backup")
    .description("write a sealed snapshot of the control plane to the object store")
    .example("admin backup")
    .does(async ({ person, output }) =>
      output.show(await (await person()).admin<object>("ControlService", "BackupControlPlane")),
    );

  admin
    .command("restore [backup]")
    .description(
      "set the control plane of this host's installation back, the newest backup by default; stop the platform first",
    )
    .option("--yes", "do not ask")
    .example("admin restore")
    .does(async (context, backupId: string | undefined, { yes }: { yes?: boolean }) => {
      const local = await localModule<LocalRestore>("restore-control-plane.ts");
      if (local === undefined) throw new UsageError("this build has no restore");
      const { dataDirectory, signal, confirm } = context;
      await confirm(`Set the control plane in ${dataDirectory} back?`, yes);
      await local.restoreControlPlane({ dataDirectory, backupId, signal });
    });
}
