import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type AuthoritySchema, AuthorityService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { OutdatedCertificates } from "#kernel/pki/authority-rotation-reconciler.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";

export interface AuthorityApiDeps {
  readonly begin: () => UnitOfWork;
  readonly authority: InstallationAuthority;
  readonly followers: OutdatedCertificates;
}

const hourMs = 3_600_000;
const defaultOverlapHours = 720;
const outdatedListMax = 100;

/** The admin RPCs of the certificate authority and its rotation. */
export function createAuthorityApi({ begin, authority, followers }: AuthorityApiDeps): ServedService {
  function authorityMessage(): MessageInitShape<typeof AuthoritySchema> {
    const { authorities, signing, rotation } = authority.record;
    const outdated = rotation.state === "idle" ? [] : followers.outdated();
    return {
      trusted: authorities.map(({ fingerprint, notAfter }) => ({
        fingerprint,
        notAfter: timestampFromMs(notAfter),
        signs: fingerprint === signing,
      })),
      rotation: rotation.state,
      since: timestampFromMs(rotation.since),
      ...(rotation.state === "spreading" && { signsFrom: timestampFromMs(rotation.signsFrom) }),
      behind: outdated.slice(0, outdatedListMax),
      behindCount: outdated.length,
    };
  }

  async function change(
    call: Call,
    action: string,
    run: (audited: () => UnitOfWork) => Promise<boolean>,
    refusal: string,
  ) {
    const changed = await run(() => {
      const unit = begin();
      // oxlint-disable-next-line holdfast/audited -- the PKI commits this unit with the authority's record
      unit.audit(auditOf(call, `authority.${action}`, "organization", ""));
      return unit;
    });
    if (!changed) throw new HoldfastError("WRONG_STATE", refusal);
    return authorityMessage();
  }

  const state = () => authority.record.rotation.state;
  const handlers: Handlers<typeof AuthorityService> = {
    getAuthority: async () => authorityMessage(),
    rotateAuthority: ({ overlapHours = defaultOverlapHours }, call) =>
      change(
        call,
        "rotate",
        (audited) => authority.beginRotation(overlapHours * hourMs, audited),
        `A rotation is in progress (${state()}): wait for its end, or cancel it while it is spreading.`,
      ),
    cancelAuthorityRotation: (_, call) =>
      change(
        call,
        "cancel-rotation",
        (audited) => authority.rotate("cancelled", audited),
        state() === "idle"
          ? "There is no rotation to cancel."
          : `A rotation in state ${state()} cannot be canceled, because the new authority signs already. It continues without further action.`,
      ),
    forceAuthorityRotation: (_, call) =>
      change(
        call,
        "force-rotation",
        (audited) => authority.rotate(state() === "renewing" ? "renewed" : "trusted", audited),
        "There is no rotation to continue.",
      ),
  };
  return serve(AuthorityService, handlers);
}
