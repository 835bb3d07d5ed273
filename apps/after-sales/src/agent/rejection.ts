const REJECTED = /^The person rejected this call; it was not carried out\.(?: Reason: (.*))?$/s;

/** The reviewer's reason in the message that `approvals` writes for a rejected call; undefined for any other message. */
export function rejectionReason(text: string): string | undefined {
  const match = REJECTED.exec(text);
  return match ? (match[1] ?? "") : undefined;
}
