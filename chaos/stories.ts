import type { Plan } from "./agent-words.ts";
import type { Random } from "./random.ts";

/** An order the harness put into the shop. */
export interface Order {
  readonly id: string;
  readonly status: "delivered" | "in_delivery";
  /** Fen. */
  readonly amount: number;
}

/** What a person wants in a thread of their own, and how they behave. */
export interface Story {
  readonly kind: StoryKind;
  readonly thread: string;
  /** Says in the shop's own tables who asked: the reason of a refund, the content of a message. */
  readonly tag: string;
  readonly message: { readonly id: string; readonly text: string };
  readonly orders: readonly Order[];
  readonly plan: Plan;
  /** When the person comes back to what they left open, and what they say then. */
  readonly later?: { readonly afterMs: number; readonly plan: Plan };
}

export type StoryKind =
  | "small"
  | "rejected"
  | "large"
  | "unconfirmed"
  | "later"
  | "batch"
  /** So many orders that a conversation waits for a task. */
  | "long"
  /** A program that begins a task and keeps its id. */
  | "task"
  | "undelivered"
  | "contended"
  | "message"
  | "look";

const WEIGHTS: Readonly<Record<StoryKind, number>> = {
  small: 20,
  rejected: 6,
  large: 16,
  unconfirmed: 10,
  later: 16,
  batch: 12,
  long: 3,
  task: 5,
  undelivered: 4,
  contended: 6,
  message: 12,
  look: 2,
};

/** From this amount on the server asks; a batch takes orders up to it. Fen. */
const LARGE = 50_000;
/** From so many orders on a batch becomes a task. */
const TASK_FROM = 101;
const APPROVE: Plan = { approval: "approve", question: "confirm" };

/** Orders of a shop in which much is sent back. */
export function makeOrders(random: Random, count: number): Order[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `ORD-${10_000 + i}`,
    status: random.chance(0.04) ? "in_delivery" : "delivered",
    amount: random.chance(0.3) ? random.between(LARGE, 900_000) : random.between(100, LARGE - 1),
  }));
}

/** Each kind once, before chance decides; what takes longest first. */
const OPENING: readonly StoryKind[] = ["task", "later", "long", "large", "batch", "message", "unconfirmed", "small"];

/** Gives out one story after the other; each order is wanted once, unless two people want it. */
export function createTeller(
  random: Random,
  orders: readonly Order[],
  weights: Readonly<Partial<Record<StoryKind, number>>> = WEIGHTS,
): { next(): Story | undefined; readonly told: readonly Story[] } {
  const told: Story[] = [];
  const piles = {
    small: orders.filter(({ status, amount }) => status === "delivered" && amount < LARGE),
    large: orders.filter(({ status, amount }) => status === "delivered" && amount >= LARGE),
    undelivered: orders.filter(({ status }) => status !== "delivered"),
  };
  let rival: Order | undefined;

  const take = (pile: keyof typeof piles, count = 1): Order[] => piles[pile].splice(0, count);
  function ordersFor(kind: StoryKind): Order[] {
    switch (kind) {
      case "large":
      case "unconfirmed":
      case "later":
        return take("large");
      case "batch":
        return take("small", random.between(3, 12));
      case "long":
      case "task":
        return take("small", random.between(TASK_FROM, 400));
      case "undelivered":
        return take("undelivered");
      case "contended": {
        const wanted = rival ? [rival] : take("small");
        rival = rival ? undefined : wanted[0];
        return wanted;
      }
      case "message":
        return [];
      default:
        return take("small");
    }
  }

  return {
    told,
    next() {
      const kind = OPENING[told.length] ?? random.weighted(weights);
      const wanted = ordersFor(kind);
      if (wanted.length === 0 && kind !== "message") return undefined; // sold out
      const n = told.length + 1;
      const tag = `tag-${n}`;
      const ids = wanted.map(({ id }) => id).join("、");
      const text =
        kind === "message"
          ? `给 138${String(10_000_000 + n)} 发短信，内容：${tag}`
          : kind === "look"
            ? `查询 ${ids}`
            : `${ids} 退款，${tag}`;
      const story: Story = {
        kind,
        thread: `chaos-${n}`,
        tag,
        message: { id: `message-${n}`, text },
        orders: wanted,
        plan:
          kind === "rejected"
            ? { approval: "reject", question: "confirm" }
            : kind === "unconfirmed"
              ? { approval: "approve", question: random.pick(["choose_cancel", "decline", "dismiss"]) }
              : kind === "later"
                ? { approval: "approve", question: "leave" }
                : APPROVE,
        ...(kind === "later" && {
          later: {
            afterMs: random.between(1_000, 12_000),
            plan: { approval: "approve", question: random.pick(["confirm", "confirm", "decline"]) },
          },
        }),
      };
      told.push(story);
      return story;
    },
  };
}
