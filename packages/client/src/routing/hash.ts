/** Spreads the bits of 32. */
function mix(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85eb_ca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2_ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * A number of 53 bits for a text. The same in every process and version, since processes that share replicas must agree; no
 * protection against somebody who looks for collisions, who would only choose their own replica.
 */
export function hashText(text: string, seed = 0): number {
  let low = mix(seed ^ 0x9e37_79b9);
  let high = mix(seed ^ 0x7f4a_7c15);
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    low = Math.imul(low ^ unit, 0x9e37_79b1);
    high = Math.imul(high ^ unit, 0x85eb_ca77);
    low ^= low >>> 15;
    high ^= high >>> 13;
  }
  low = mix(low ^ text.length);
  high = mix(high ^ low);
  return (high & 0x1f_ffff) * 0x1_0000_0000 + low;
}

/** What takes part in the choice. */
export interface Ranked {
  readonly id: string;
}

/**
 * All members in the order of preference of one key (rendezvous hashing, highest weight first): every key has an order of its
 * own, and when a member leaves or joins, only the keys that had it, or get it, in front change theirs.
 */
export function rank<M extends Ranked>(key: string, members: readonly M[]): M[] {
  const weighed = members.map((member) => ({ member, weight: hashText(key, hashText(member.id) >>> 0) }));
  weighed.sort((a, b) => b.weight - a.weight || (a.member.id < b.member.id ? -1 : 1));
  return weighed.map(({ member }) => member);
}
