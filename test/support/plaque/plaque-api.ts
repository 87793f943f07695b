import { create } from "@bufbuild/protobuf";
import { type Call, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  auditOf,
  commitAndSee,
  mayTouch,
  organizationOf,
  requireUnlimited,
} from "@holdfast/controller/access/caller.ts";
import type { Quotas } from "@holdfast/controller/access/organization/quotas.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import { retryConflict } from "@holdfast/controller/kernel/store/retry-conflict.ts";
import { type Plaque, plaqueKind } from "./plaque.ts";
import { plaqueService } from "./plaque-service.ts";

interface PlaqueApiDeps extends Pick<Kernel, "begin" | "cursors" | "clock" | "newId"> {
  readonly plaques: Collection<Plaque>;
  readonly quotas: Pick<Quotas, "claim">;
}

/** The RPCs of plaques. */
export function createPlaqueApi({ plaques, quotas, begin, cursors, clock, newId }: PlaqueApiDeps): ServedService {
  return serve(plaqueService, {
    createPlaque(request, call: Call) {
      requireUnlimited(call);
      const { words } = asked(request);
      const organizationId = organizationOf(call);
      return retryConflict(call.signal, async () => {
        const id = newId();
        const metadata = newMetadata(id, clock.now(), { organizationId });
        const plaque: Plaque = { metadata, spec: { words }, status: { engraved: null } };
        const unit = begin();
        unit.create(plaqueKind, plaque);
        await quotas.claim(unit, organizationId, { plaques: 1 });
        unit.audit(auditOf(call, "plaque.create", plaqueKind.name, id));
        unit.answer(call, create(plaqueService.method["createPlaque"]!.output, plaqueMessage(plaque)));
        await commitAndSee(call, unit, [plaques]);
        return plaqueMessage(plaque);
      });
    },

    async getPlaque(request, call: Call) {
      const { id } = asked(request);
      const plaque = plaques.get(id)?.object;
      if (plaque?.metadata.organizationId !== organizationOf(call) || !mayTouch(call, plaqueKind.name, id))
        throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such plaque in the organization.");
      return plaqueMessage(plaque);
    },

    async listPlaques(request, call: Call) {
      const organizationId = organizationOf(call);
      const page = { ...cursors.open(call, "plaques", null, asked(request)), organizationId };
      const { items, next } = plaques.page(({ metadata }) => mayTouch(call, plaqueKind.name, metadata.id), page);
      return { plaques: items.map(({ object }) => plaqueMessage(object)), ...page.next(next) };
    },
  });
}

/** A descriptor that is made at run time has no types. */
const asked = (request: unknown) => request as { id: string; words: string; limit: number; cursor: string };

function plaqueMessage({ metadata: { id }, spec: { words }, status: { engraved } }: Plaque): Record<string, string> {
  return { id, words, engraved: engraved ?? "" };
}
