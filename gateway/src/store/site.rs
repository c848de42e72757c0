//! The table of the site as a whole.

use gateway_api::site::Site;
use sqlx::Row as _;

use super::{Line, Store, StoreError, audit};

impl Store {
    pub(crate) async fn site(&self) -> Result<Site, StoreError> {
        let row = sqlx::query("select * from site").fetch_optional(&self.pool).await?;
        let Some(row) = row else { return Ok(Site::default()) };
        Ok(Site {
            name: row.try_get("name")?,
            confirm_always: row.try_get("confirm_always")?,
            set_up: row.try_get("set_up")?,
        })
    }

    /// What is `None` stays as it is.
    pub(crate) async fn change_site(
        &self,
        name: Option<&str>,
        confirm_always: Option<bool>,
        set_up: Option<bool>,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query(
            "insert into site (only_one, name, confirm_always, set_up)
             values (1, coalesce(?1, ''), coalesce(?2, 0), coalesce(?3, 0))
             on conflict (only_one) do update set
                name = coalesce(?1, name),
                confirm_always = coalesce(?2, confirm_always),
                set_up = coalesce(?3, set_up)",
        )
        .bind(name)
        .bind(confirm_always)
        .bind(set_up)
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await
    }
}
