import { create } from "@bufbuild/protobuf";
import type { Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type BackupService,
  type BackupSettings as BackupSettingsMessage,
  BackupSettingsSchema,
  type UpdateBackupSettingsRequest,
} from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { archiveKind, type ArchiveObject, type BackupSettings, newArchive, settingsOf } from "./archive/archive.ts";

interface SettingsDeps {
  readonly begin: () => UnitOfWork;
  readonly archives: Collection<ArchiveObject>;
  readonly access: ServiceAccess;
  readonly clock: Clock;
}

type SettingsHandlers = Pick<Handlers<typeof BackupService>, "getBackupSettings" | "updateBackupSettings">;

/** The RPCs of a service's backup settings. */
export function createSettingsHandlers(deps: SettingsDeps): SettingsHandlers {
  const { archives, access, clock } = deps;
  return {
    getBackupSettings: async ({ serviceId }, call) => {
      access.require(serviceId, call);
      return settingsMessage(serviceId, settingsOf(serviceId, archives.get(serviceId)?.object));
    },

    updateBackupSettings: (request, call) =>
      mutate(deps, call, { action: "backup-settings.update", kind: "archive", visibleIn: [archives] }, async (unit) => {
        const { serviceId } = request;
        const { object: service } = access.require(serviceId, call);
        if (service.metadata.deletionRequestedAt !== undefined)
          throw new HoldfastError("WRONG_STATE", "The service is being deleted.");
        const now = clock.now();
        const stored = archives.get(serviceId);
        const before = stored?.object ?? newArchive(service, now, now);
        const settings = changed(settingsOf(serviceId, before), request);
        const spec = { ...before.spec, settings };
        if (stored === undefined) unit.create(archiveKind, { ...before, spec });
        else unit.update(archiveKind, stored, { ...before, metadata: nextMetadata(before.metadata, now), spec });
        return { id: serviceId, result: settingsMessage(serviceId, settings) };
      }),
  };
}

/** The settings with the fields of the update mask changed. Throws INVALID_REQUEST. */
function changed(before: BackupSettings, request: UpdateBackupSettingsRequest): BackupSettings {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  let after = before;
  for (const path of paths) {
    if (path === "hour") after = { ...after, hour: required(path, request.hour) };
    else if (path === "minute") after = { ...after, minute: required(path, request.minute) };
    else if (path === "retention_days") after = { ...after, retentionDays: required(path, request.retentionDays) };
    else throw invalid({ field: "update_mask", code: "unknown_field", detail: `${path} cannot be changed` });
  }
  return after;
}

function required(field: string, value: number | undefined): number {
  if (value === undefined) throw invalid({ field, code: "not_clearable", detail: "must not be null" });
  return value;
}

function settingsMessage(serviceId: string, { hour, minute, retentionDays }: BackupSettings): BackupSettingsMessage {
  return create(BackupSettingsSchema, { serviceId, hour, minute, retentionDays });
}
