//! What a job file from elsewhere means here: the reading that a submission gets, without the submission.

use gateway_api::convert::{ConvertJob, Converted};

use super::{App, jobs::note};
use crate::auth::Caller;

impl App {
    /// Mistakes are part of the answer: whoever asks is still writing.
    pub(crate) async fn convert_job(&self, caller: &Caller, wanted: &ConvertJob) -> Converted {
        let (user, group) = (caller.user.name.as_str(), caller.user.group.as_str());
        let cluster = self.cluster_of_file(&wanted.file);
        let site = self.site(cluster, user, &caller.user.home, group).await;
        let site = jobfile::Site { clusters: Some(self.clusters.names()), ..site };
        let reading = jobfile::read(wanted.file.as_bytes(), &site);
        Converted {
            dialect: reading.dialect.map(|dialect| dialect.word().to_owned()),
            file: reading.spec.as_ref().map(jobfile::write),
            notes: reading.notes.iter().map(note).collect(),
        }
    }
}
