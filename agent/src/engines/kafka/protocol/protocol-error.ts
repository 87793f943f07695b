/** Error codes of Kafka's protocol that the driver distinguishes. */
// biome-ignore format: a table
export const errorCodes = {
  unknownServer:            -1,
  offsetOutOfRange:          1,
  unknownTopicOrPartition:   3,
  leaderNotAvailable:        5,
  notLeader:                 6,
  requestTimedOut:           7,
  notCoordinator:            16,
  coordinatorNotAvailable:   15,
  coordinatorLoading:        14,
  notEnoughReplicas:         19,
  notEnoughReplicasAfter:    20,
  illegalGeneration:         22,
  unknownMember:             25,
  topicAlreadyExists:        36,
  invalidPartitions:         37,
  invalidReplicationFactor:  38,
  invalidConfig:             40,
  notController:             41,
  storageError:              56,
  saslAuthenticationFailed:  58,
  nonEmptyGroup:             68,
  groupIdNotFound:           69,
  offsetNotAvailable:        78,
  resourceNotFound:          91,
  unknownTopicId:           100,
  brokerNotRegistered:      102,
  inconsistentTopicId:      103,
} as const;

/** Kafka refused a call, or a part of it. */
export class KafkaRefusal extends Error {
  override readonly name = "KafkaRefusal";
  readonly code: number;

  constructor(call: string, code: number, message: string | null) {
    super(message ?? `${call} failed with the error ${code} of the protocol`);
    this.code = code;
  }
}

/** Throws KafkaRefusal for a code other than 0. */
export function requireSuccess(
  call: string,
  result: { readonly errorCode: number; readonly errorMessage?: string | null },
): void {
  if (result.errorCode !== 0) throw new KafkaRefusal(call, result.errorCode, result.errorMessage ?? null);
}

/** True for an error that ends by itself, such as while a leader is elected. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof KafkaRefusal)) return false;
  const { unknownTopicOrPartition, leaderNotAvailable, notLeader, notController, coordinatorLoading } = errorCodes;
  const { coordinatorNotAvailable, notCoordinator, requestTimedOut, offsetNotAvailable } = errorCodes;
  const { unknownTopicId, inconsistentTopicId } = errorCodes;
  const codes: readonly number[] = [
    unknownTopicOrPartition,
    leaderNotAvailable,
    notLeader,
    notController,
    coordinatorLoading,
    coordinatorNotAvailable,
    notCoordinator,
    requestTimedOut,
    offsetNotAvailable,
    unknownTopicId,
    inconsistentTopicId,
  ];
  return codes.includes(error.code);
}
