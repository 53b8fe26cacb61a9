//! A group that all contenders join and leave.

use minikeeper_recipes::GroupMember;
use tokio::time::sleep;

use crate::sim::contender::Contender;

const GROUP: &str = "/groups/many";

pub(super) async fn contend(mut me: Contender) {
    let id = me.who.to_string();
    while me.next_round().await {
        let payload = [me.chance.below(200).to_le_bytes()[0]];
        let member = GroupMember::start(me.client.clone(), GROUP, &id, b"").unwrap();
        let mut changes = member.changes();
        member.set_payload(&payload);
        if me.is_last {
            match me.must("joining", member.joined()).await {
                Some(Ok(())) => me.judge.gained("group member"),
                other => me.failed(format!("{id} cannot join: {other:?}")),
            }
            // What the cache shows is what the server has.
            let path = format!("{GROUP}/{id}");
            match me.client.get_data(&path).await {
                Ok(data) if data.as_bytes().is_empty() || data.as_bytes() == payload => {}
                other => me.failed(format!("{path} is not this member's: {other:?}")),
            }
            let seen =
                async { while !matches!(changes.next().await, Ok(Some(seen)) if seen == id) {} };
            me.must("seeing itself", seen).await;
        } else {
            sleep(me.chance.millis(3_000)).await;
            if !member.members().contains_key(&id) {
                me.judge
                    .violation(format!("{id} is no member of its own group"));
            }
        }
        if (me.chance.once_in(2) || me.is_last)
            && let Some(Err(error)) = me.must("leaving", member.close()).await
            && me.is_last
        {
            me.failed(format!("{id} cannot leave: {error}"));
        }
    }
}
