"""What can be trained and used: translation, classification, images, captioning."""
